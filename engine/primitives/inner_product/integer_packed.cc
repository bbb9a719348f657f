// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/products/integer_product.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::inner_product {
namespace {

// With the layout of weights.
struct TileKind : IntegerTileKind {
  using IntegerTileKind::IntegerTileKind;

  // "AB16a4b", "AcdB16a4b"; of whole steps "AB16b16a4b".
  std::string WeightsPattern(int rank) const {
    return absl::StrCat("A", absl::string_view("cdefg").substr(0, rank - 2), "B",
                        is_matrix ? "16b" : "", unit.lanes(), "a", kQuad, "b");
  }
  bool NeedsCompensation(const MemoryDesc& src) const {
    return TakesUnsignedOnly() && src.data_type() == DataType::kS8;
  }
};

// Bytes of an image in the order of the weights, its channels rounded up to steps.
int64_t StagedBytes(const MemoryDesc& src, int64_t step) {
  return src.ElementCount() / src.dim(0) / src.dim(1) * RoundUp(src.dim(1), step);
}

// Where in an image of src each of these bytes lies; those after the last channel repeat one,
// because their weights are 0.
std::vector<int64_t> StagedOffsets(const MemoryDesc& src, int64_t step) {
  const SeparableOffsets offsets(src);
  Dims order = src.dims();  // of the walk: spatial dimensions, then channels
  order.erase(order.begin(), order.begin() + 2);
  order.push_back(RoundUp(src.dim(1), step));
  std::vector<int64_t> result;
  ForEachIndex(order, [&](const Dims& index) {
    const int spatial = static_cast<int>(index.size()) - 1;
    int64_t offset = offsets.At(1, std::min(index[spatial], src.dim(1) - 1));
    for (int d = 0; d < spatial; ++d) offset += offsets.At(2 + d, index[d]);
    result.push_back(offset);
  });
  return result;
}

// How many bytes lie at the beginning of an image of src as they are to.
int64_t LengthInPlace(const std::vector<int64_t>& offsets) {
  int64_t length = 0;
  while (length < static_cast<int64_t>(offsets.size()) && offsets[length] == length) ++length;
  return length;
}

// Immutable. A task is one group of output blocks for all images.
class IntegerPacked final : public Primitive {
 public:
  using Generators = std::map<std::pair<bool, int>, std::unique_ptr<const jit::Generator>>;

  // `stage`: the offsets of StagedOffsets(), empty where src is read in place.
  IntegerPacked(PrimitiveInfo primitive_info, const InnerProductDesc& desc, const TileKind& kind,
                int max_rows, std::vector<float> scales, std::vector<int64_t> stage,
                Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        src_(desc.src),
        is_matrix_(kind.is_matrix),
        group_(kind.columns()),
        max_rows_(max_rows),
        image_(StagedBytes(desc.src, kind.step())),
        scales_(std::move(scales)),
        stage_(std::move(stage)),
        in_place_(LengthInPlace(stage_)),
        generators_(std::move(generators)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const auto* src = First<const std::byte>(args, kArgSrc);
    if (!stage_.empty()) {
      team.ParallelFor(desc_.src.dim(0),
                       [&](int64_t n) { Stage(src + src_.At(0, n), scratchpad + n * image_); });
      src = scratchpad;
    }
    team.ParallelFor(DivUp(desc_.dst.dim(1), group_), [&](int64_t g) {
      if (!is_matrix_) return RunGroup(args, src, g, nullptr);
      MatrixTiles tiles;
      RunGroup(args, src, g, &tiles);
      FinishMatrixTiles(&tiles);
    });
  }

  void RunGroup(const ExecuteArgs& args, const std::byte* src, int64_t group,
                MatrixTiles* tiles) const {
    const bool last = (group + 1) * group_ >= desc_.dst.dim(1);
    const int64_t rows = desc_.src.dim(0);
    for (int64_t row = 0; row < rows && !threading::Stopped(); row += max_rows_) {
      const int64_t tile_rows = std::min<int64_t>(max_rows_, rows - row);
      IntegerTileArgs tile = TileArgs(args, src, group * group_, row);
      tile.tiles = tiles;
      generators_.at({last, static_cast<int>(tile_rows)})->entry<IntegerTileFunction>()(&tile);
    }
  }

  void Stage(const std::byte* from, std::byte* to) const {
    const std::byte flip{desc_.weights.HasCompensation() ? uint8_t{0x80} : uint8_t{0}};
    int64_t i = 0;
    if (flip == std::byte{0}) {
      std::memcpy(to, from, in_place_);
      i = in_place_;
    }
    for (; i < image_; ++i) to[i] = from[stage_[i]] ^ flip;
  }

  IntegerTileArgs TileArgs(const ExecuteArgs& args, const std::byte* src, int64_t channel,
                           int64_t row) const {
    const std::byte* weights = args.Get<const std::byte>(kArgWeights);
    const int64_t dst = row * desc_.dst.stride(0) + channel;
    IntegerTileArgs tile = {};
    tile.src = src + row * (stage_.empty() ? desc_.src.stride(0) : image_);
    tile.weights = weights + channel * image_;
    if (!desc_.bias.IsZero()) {
      tile.bias = args.Get<const std::byte>(kArgBias) + channel * SizeOf(desc_.bias.data_type());
    }
    tile.scales = scales_.data() + channel;
    if (desc_.weights.HasCompensation()) {
      tile.compensation =
          reinterpret_cast<const int32_t*>(weights + desc_.weights.CompensationOffsetBytes()) +
          channel;
    }
    tile.dst = First<std::byte>(args, kArgDst) + dst * SizeOf(desc_.dst.data_type());
    tile.loops = ProductLoopArgs(image_);
    return tile;
  }

  const InnerProductDesc desc_;
  const SeparableOffsets src_;
  const bool is_matrix_;
  const int64_t group_;  // channels of a task
  const int max_rows_;
  const int64_t image_;              // bytes
  const std::vector<float> scales_;  // in whole vectors
  const std::vector<int64_t> stage_;
  const int64_t in_place_;       // bytes of an image that are copied as they lie
  const Generators generators_;  // by (last group, rows)
};

IntegerTileConfig IntegerConfigOf(const InnerProductDesc& desc, const Attributes& attributes,
                                  const TileKind& kind, bool last, int rows, int64_t src_row) {
  const VectorUnit& unit = kind.unit;
  const int64_t group = kind.columns();
  const int64_t image = StagedBytes(desc.src, kind.step());
  const int64_t channels = last ? (desc.dst.dim(1) - 1) % group + 1 : group;
  const int64_t dst_bytes = SizeOf(desc.dst.data_type());
  IntegerTileConfig config{
      .epilogue = {.unit = unit,
                   .blocks = static_cast<int>(DivUp(channels, unit.lanes())),
                   .pixels = rows,
                   .dst_pixel_bytes = desc.dst.stride(0) * dst_bytes,
                   .dst_block_bytes = unit.lanes() * dst_bytes,
                   .bias = !desc.bias.IsZero(),
                   .tail_lanes = static_cast<int>(channels % unit.lanes()),
                   .post_ops = attributes.post_ops,
                   .bias_type = desc.bias.IsZero() ? DataType::kF32 : desc.bias.data_type(),
                   .dst_type = desc.dst.data_type(),
                   .compensation = desc.weights.HasCompensation(),
                   .scales = !attributes.output_scales.IsDefault(),
                   .packed_channels = true}};
  config.signed_src = !kind.TakesUnsignedOnly() && desc.src.data_type() == DataType::kS8;
  SetProductLoops(kind, image, src_row, &config);
  return config;
}

absl::StatusOr<IntegerPacked::Generators> Generate(const InnerProductDesc& desc,
                                                   const Attributes& attributes,
                                                   const TileKind& kind, absl::string_view name,
                                                   int max_rows, int64_t src_row) {
  const int64_t rows = desc.src.dim(0);
  IntegerPacked::Generators generators;
  for (int tile_rows = 1; tile_rows <= max_rows; ++tile_rows) {
    const bool full = tile_rows == max_rows && rows >= max_rows;
    if (!full && rows % max_rows != tile_rows) continue;
    for (bool last : {false, true}) {
      if (!last && desc.dst.dim(1) <= kind.columns()) continue;
      ABSL_ASSIGN_OR_RETURN(
          auto generator,
          GenerateProductTile(kind, name,
                              IntegerConfigOf(desc, attributes, kind, last, tile_rows, src_row)));
      generators[{last, tile_rows}] = std::move(generator);
    }
  }
  return generators;
}

// Rows whose elements are neighbours, and which tiles of rows of `step` elements can reach.
absl::Status RequireDenseRows(const InnerProductDesc& desc, int64_t step) {
  const MemoryDesc &dst = desc.dst, &bias = desc.bias;
  if (!dst.IsPlain() || (dst.stride(1) != 1 && dst.dim(1) != 1))
    return Unimplemented("dst is not nc");
  if (!bias.IsZero() && ((bias.stride(0) != 1 && bias.dim(0) != 1) || bias.offset0() != 0))
    return Unimplemented("bias is not dense");
  // Every offset inside a tile is a 32-bit immediate.
  constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 64;
  if (StagedBytes(desc.src, step) > kMaxOffset || desc.src.stride(0) > kMaxOffset ||
      dst.stride(0) > kMaxOffset) {
    return Unimplemented("strides over 31 bits");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveIntegerPacked(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const TileKind kind(request.facts.isa, desc.weights);
  ABSL_RETURN_IF_ERROR(RequireForwardInteger(desc));
  constexpr int64_t kFewestRows = 8, kFewestChannels = 32;
  if (kind.is_matrix && (desc.src.dim(0) < kFewestRows || desc.src.dim(1) < kFewestChannels)) {
    return Unimplemented("is for 8 rows of 32 channels and more");
  }
  InnerProductDesc resolved = desc;
  const int rank = desc.src.rank();
  const std::string order = absl::StrCat("a", absl::string_view("cdefg").substr(0, rank - 2), "b");
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPattern(desc.src, order));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPlain(desc.bias));
  if (resolved.src.ElementCount() == 0 || resolved.dst.ElementCount() == 0) {
    return Unimplemented("nothing to compute");
  }
  ABSL_RETURN_IF_ERROR(RequireDenseRows(resolved, kind.step()));
  ABSL_ASSIGN_OR_RETURN(
      MemoryDesc packed,
      MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kS8, kind.WeightsPattern(rank)));
  if (kind.NeedsBound()) {
    ABSL_ASSIGN_OR_RETURN(packed, packed.WithBound(kPairBound));
  }
  if (kind.NeedsCompensation(desc.src)) {
    ABSL_ASSIGN_OR_RETURN(packed, packed.WithCompensation(1));
  }
  return WithWeights(std::move(resolved), packed);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerPacked(
    const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const TileKind kind(request.facts.isa, desc.weights);
  PrimitiveInfo info = InfoOf(request);
  std::vector<int64_t> stage = StagedOffsets(desc.src, kind.step());
  int64_t src_row = StagedBytes(desc.src, kind.step());
  if (LengthInPlace(stage) == src_row && desc.src.BlockSize(0) == 1 &&
      !desc.weights.HasCompensation()) {
    stage.clear();
    src_row = desc.src.stride(0);
  } else {
    const auto bytes = CheckedMul(desc.src.dim(0), src_row);
    if (!bytes) return ResourceExhausted("the copy of src is too large");
    info.scratchpad_bytes = *bytes;
  }
  const int max_rows = kind.MaxRows(request.attributes.post_ops);
  ABSL_ASSIGN_OR_RETURN(
      IntegerPacked::Generators generators,
      Generate(desc, request.attributes, kind, request.facts.name, max_rows, src_row));
  for (const auto& [key, generator] : generators) info.code_bytes += generator->code_bytes();
  const OutputScales& output_scales = request.attributes.output_scales;
  std::vector<float> scales(RoundUp(desc.dst.dim(1), kind.unit.lanes()), output_scales.scales[0]);
  if (output_scales.mask != 0)
    std::copy(output_scales.scales.begin(), output_scales.scales.end(), scales.begin());
  return std::make_unique<IntegerPacked>(std::move(info), desc, kind, max_rows, std::move(scales),
                                         std::move(stage), std::move(generators));
}

}  // namespace tilewire::inner_product
