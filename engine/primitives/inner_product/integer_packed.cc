// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/integer_tile.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/threading/stop.h"

namespace tilewire::inner_product {
namespace {

constexpr int kBlockQuads = 16;  // a cache line of src

int MaxBlocks(const VectorUnit& unit) { return unit.registers() >= 32 ? 4 : 2; }

int MaxRows(const VectorUnit& unit, const PostOps& post_ops) {
  const int blocks = MaxBlocks(unit);
  const int beside = std::max(blocks + 1, AccumulatorEpilogue::IntegerScratchCount(post_ops));
  return std::max(1, (unit.registers() - ExtraIntegerVectors(unit) - beside) / blocks);
}

// "AB16a4b", "AcdB16a4b"
std::string IntegerWeightsPattern(int rank, int lanes) {
  return absl::StrCat("A", absl::string_view("cdefg").substr(0, rank - 2), "B", lanes, "a", kQuad,
                      "b");
}

// Bytes of an image in the order of the weights, its channels rounded up to quads.
int64_t StagedBytes(const MemoryDesc& src) {
  return src.ElementCount() / src.dim(0) / src.dim(1) * RoundUp(src.dim(1), kQuad);
}

// Where in an image of src each of these bytes lies; those after the last channel repeat one,
// because their weights are 0.
std::vector<int64_t> StagedOffsets(const MemoryDesc& src) {
  const SeparableOffsets offsets(src);
  Dims order = src.dims();  // of the walk: spatial dimensions, then channels
  order.erase(order.begin(), order.begin() + 2);
  order.push_back(RoundUp(src.dim(1), kQuad));
  std::vector<int64_t> result;
  ForEachIndex(order, [&](const Dims& index) {
    const int spatial = static_cast<int>(index.size()) - 1;
    int64_t offset = offsets.At(1, std::min(index[spatial], src.dim(1) - 1));
    for (int d = 0; d < spatial; ++d) offset += offsets.At(2 + d, index[d]);
    result.push_back(offset);
  });
  return result;
}

bool IsIdentity(const std::vector<int64_t>& offsets) {
  for (size_t i = 0; i < offsets.size(); ++i) {
    if (offsets[i] != static_cast<int64_t>(i)) return false;
  }
  return true;
}

// Immutable. A task is one group of output blocks for all images.
class IntegerPacked final : public Primitive {
 public:
  using Generators = std::map<std::pair<bool, int>, std::unique_ptr<const jit::Generator>>;

  // `stage`: the offsets of StagedOffsets(), empty where src is read in place.
  IntegerPacked(PrimitiveInfo primitive_info, const InnerProductDesc& desc, const VectorUnit& unit,
                int max_rows, std::vector<float> scales, std::vector<int64_t> stage,
                Generators generators)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        src_(desc.src),
        group_(MaxBlocks(unit) * unit.lanes()),
        max_rows_(max_rows),
        image_(StagedBytes(desc.src)),
        scales_(std::move(scales)),
        stage_(std::move(stage)),
        generators_(std::move(generators)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const std::byte* src = args.Get<const std::byte>(kArgSrc) + desc_.src.offset0();
    if (!stage_.empty()) {
      team.ParallelFor(desc_.src.dim(0),
                       [&](int64_t n) { Stage(src + src_.At(0, n), scratchpad + n * image_); });
      src = scratchpad;
    }
    const int64_t channels = desc_.dst.dim(1), rows = desc_.src.dim(0);
    team.ParallelFor(DivUp(channels, group_), [&](int64_t g) {
      const bool last = (g + 1) * group_ >= channels;
      for (int64_t row = 0; row < rows; row += max_rows_) {
        const int64_t tile_rows = std::min<int64_t>(max_rows_, rows - row);
        const IntegerTileArgs tile = TileArgs(args, src, g * group_, row);
        generators_.at({last, static_cast<int>(tile_rows)})->entry<IntegerTileFunction>()(&tile);
        if (threading::Stopped()) return;
      }
    });
  }

  void Stage(const std::byte* from, std::byte* to) const {
    const std::byte flip{desc_.weights.HasCompensation() ? uint8_t{0x80} : uint8_t{0}};
    for (int64_t i = 0; i < image_; ++i) to[i] = from[stage_[i]] ^ flip;
  }

  IntegerTileArgs TileArgs(const ExecuteArgs& args, const std::byte* src, int64_t channel,
                           int64_t row) const {
    const std::byte* weights = args.Get<const std::byte>(kArgWeights);
    const int64_t dst = desc_.dst.offset0() + row * desc_.dst.stride(0) + channel;
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
    tile.dst = args.Get<std::byte>(kArgDst) + dst * SizeOf(desc_.dst.data_type());
    tile.loops.full_blocks = image_ / kQuad / kBlockQuads;
    tile.loops.tail_blocks = image_ / kQuad % kBlockQuads != 0 ? 1 : 0;
    return tile;
  }

  const InnerProductDesc desc_;
  const SeparableOffsets src_;
  const int64_t group_;  // channels of a task
  const int max_rows_;
  const int64_t image_;              // bytes
  const std::vector<float> scales_;  // in whole vectors
  const std::vector<int64_t> stage_;
  const Generators generators_;  // by (last group, rows)
};

IntegerTileConfig IntegerConfigOf(const InnerProductDesc& desc, const Attributes& attributes,
                                  const VectorUnit& unit, bool last, int rows, int64_t src_row) {
  const int64_t group = MaxBlocks(unit) * unit.lanes(), image = StagedBytes(desc.src);
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
  config.signed_src = !unit.has_dot_products() && desc.src.data_type() == DataType::kS8;
  config.loops = {.channels = kBlockQuads,
                  .tail_channels = static_cast<int>(image / kQuad % kBlockQuads),
                  .full_blocks = image / kQuad >= kBlockQuads,
                  .tap_channels = kBlockQuads,
                  .src_pixel = src_row,
                  .src_block = kBlockQuads * kQuad,
                  .weights_oc_block = image * unit.lanes(),
                  .weights_ic_block = kBlockQuads * kQuad * unit.lanes()};
  config.loops.taps.assign(rows, TapRange{0, 1});
  return config;
}

absl::StatusOr<IntegerPacked::Generators> Generate(const InnerProductDesc& desc,
                                                   const Attributes& attributes,
                                                   const VectorUnit& unit, absl::string_view name,
                                                   int max_rows, int64_t src_row) {
  const int64_t rows = desc.src.dim(0);
  IntegerPacked::Generators generators;
  for (int tile_rows = 1; tile_rows <= max_rows; ++tile_rows) {
    const bool full = tile_rows == max_rows && rows >= max_rows;
    if (!full && rows % max_rows != tile_rows) continue;
    for (bool last : {false, true}) {
      if (!last && desc.dst.dim(1) <= MaxBlocks(unit) * unit.lanes()) continue;
      ABSL_ASSIGN_OR_RETURN(auto generator,
                            GenerateIntegerTile(name, IntegerConfigOf(desc, attributes, unit, last,
                                                                      tile_rows, src_row)));
      generators[{last, tile_rows}] = std::move(generator);
    }
  }
  return generators;
}

}  // namespace

absl::StatusOr<InnerProductDesc> ResolveIntegerPacked(const InnerProductDesc& desc,
                                                      const Attributes&,
                                                      const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  ABSL_RETURN_IF_ERROR(RequireForwardInteger(desc));
  InnerProductDesc resolved = desc;
  const int rank = desc.src.rank();
  const std::string order = absl::StrCat("a", absl::string_view("cdefg").substr(0, rank - 2), "b");
  ABSL_ASSIGN_OR_RETURN(resolved.src, OrPattern(desc.src, order));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPlain(desc.dst));
  ABSL_ASSIGN_OR_RETURN(resolved.bias, OrPlain(desc.bias));
  if (resolved.src.ElementCount() == 0 || resolved.dst.ElementCount() == 0) {
    return absl::UnimplementedError("nothing to compute");
  }
  const MemoryDesc &dst = resolved.dst, &bias = resolved.bias;
  if (!dst.IsPlain() || (dst.stride(1) != 1 && dst.dim(1) != 1)) {
    return absl::UnimplementedError("dst is not nc");
  }
  if (!bias.IsZero() && ((bias.stride(0) != 1 && bias.dim(0) != 1) || bias.offset0() != 0)) {
    return absl::UnimplementedError("bias is not dense");
  }
  // Every offset inside a tile is a 32-bit immediate.
  constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max() / 64;
  if (StagedBytes(resolved.src) > kMaxOffset || resolved.src.stride(0) > kMaxOffset ||
      dst.stride(0) > kMaxOffset) {
    return absl::UnimplementedError("strides over 31 bits");
  }
  ABSL_ASSIGN_OR_RETURN(MemoryDesc packed,
                        MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kS8,
                                                  IntegerWeightsPattern(rank, unit.lanes())));
  if (unit.has_dot_products() && desc.src.data_type() == DataType::kS8) {
    ABSL_ASSIGN_OR_RETURN(packed, packed.WithCompensation(1));
  }
  if (resolved.weights.IsAny()) resolved.weights = packed;
  if (resolved.weights != packed) {
    return absl::UnimplementedError(absl::StrCat("weights are not ", packed.ToString()));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateIntegerPacked(const InnerProductDesc& desc,
                                                               const Attributes& attributes,
                                                               const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  PrimitiveInfo info = InfoOf(desc, attributes, facts);
  std::vector<int64_t> stage = StagedOffsets(desc.src);
  int64_t src_row = StagedBytes(desc.src);
  if (IsIdentity(stage) && desc.src.BlockSize(0) == 1 && !desc.weights.HasCompensation()) {
    stage.clear();
    src_row = desc.src.stride(0);
  } else {
    const auto bytes = CheckedMul(desc.src.dim(0), src_row);
    if (!bytes) return absl::ResourceExhaustedError("the copy of src is too large");
    info.scratchpad_bytes = *bytes;
  }
  const int max_rows = MaxRows(unit, attributes.post_ops);
  ABSL_ASSIGN_OR_RETURN(IntegerPacked::Generators generators,
                        Generate(desc, attributes, unit, facts.name, max_rows, src_row));
  for (const auto& [key, generator] : generators) info.code_bytes += generator->code_bytes();
  const OutputScales& output_scales = attributes.output_scales;
  std::vector<float> scales(RoundUp(desc.dst.dim(1), unit.lanes()), output_scales.scales[0]);
  if (output_scales.mask != 0)
    std::copy(output_scales.scales.begin(), output_scales.scales.end(), scales.begin());
  return std::make_unique<IntegerPacked>(std::move(info), desc, unit, max_rows, std::move(scales),
                                         std::move(stage), std::move(generators));
}

}  // namespace tilewire::inner_product
