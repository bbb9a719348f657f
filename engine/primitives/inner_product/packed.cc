// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/inner_product/tile_generator.h"
#include "engine/threading/stop.h"

namespace tilewire::inner_product {
namespace {

// Immutable. A task is one group of output blocks for all images; its last channels, if they do not
// fill a vector, go through a tile on the stack.
class Packed final : public Primitive {
 public:
  using Generators = std::map<std::pair<bool, int>, std::unique_ptr<const TileGenerator>>;

  Packed(PrimitiveInfo primitive_info, const InnerProductDesc& desc, const VectorUnit& unit,
         int max_rows, bool has_sum, Generators generators)
      : Primitive(std::move(primitive_info)),
        group_(TileGenerator::MaxBlocks(unit) * unit.lanes()),
        max_rows_(max_rows),
        rows_(desc.src.dim(0)),
        channels_(desc.dst.dim(1)),
        k_(desc.src.stride(0)),
        src_offset_(desc.src.offset0()),
        dst_offset_(desc.dst.offset0()),
        dst_stride_(desc.dst.stride(0)),
        has_bias_(!desc.bias.IsZero()),
        has_sum_(has_sum),
        generators_(std::move(generators)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    team.ParallelFor(DivUp(channels_, group_), [&](int64_t g) {
      const bool last = (g + 1) * group_ >= channels_;
      for (int64_t row = 0; row < rows_; row += max_rows_) {
        RunTile(args, g * group_, row, std::min<int64_t>(max_rows_, rows_ - row), last);
        if (threading::Stopped()) return;
      }
    });
  }

  void RunTile(const ExecuteArgs& args, int64_t channel, int64_t row, int64_t rows,
               bool last) const {
    float tile[3 * kMaxBlocks * 16];
    const int64_t tile_stride = group_;
    const int64_t count = std::min(tile_stride, channels_ - channel);
    float* dst = args.Get<float>(kArgDst) + dst_offset_ + row * dst_stride_ + channel;
    TileArgs tile_args;
    tile_args.src = args.Get<const float>(kArgSrc) + src_offset_ + row * k_;
    tile_args.weights = args.Get<const float>(kArgWeights) + channel * k_;
    tile_args.bias = has_bias_ ? args.Get<const float>(kArgBias) + channel : nullptr;
    tile_args.dst = last ? tile : dst;
    if (last && has_sum_) {
      for (int64_t r = 0; r < rows; ++r) {
        std::memcpy(tile + r * tile_stride, dst + r * dst_stride_, count * sizeof(float));
        std::fill_n(tile + r * tile_stride + count, tile_stride - count, 0.0f);
      }
    }
    generators_.at({last, static_cast<int>(rows)})->entry<TileGenerator::Function>()(&tile_args);
    if (!last) return;
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(dst + r * dst_stride_, tile + r * tile_stride, count * sizeof(float));
    }
  }

  const int64_t group_;  // output channels of a tile
  const int max_rows_;
  const int64_t rows_, channels_, k_, src_offset_, dst_offset_, dst_stride_;
  const bool has_bias_, has_sum_;
  const Generators generators_;  // by (last group, rows)
};

// The pattern of the weights: output channels outermost, then src's own order, then a vector of
// output channels.
std::string WeightsPattern(const MemoryDesc& src, int lanes) {
  std::string inputs = LayoutPattern(src);
  inputs.erase(inputs.find('a'), 1);  // the batch
  return absl::StrCat("A", inputs, lanes, "a");
}

absl::Status ResolveSrcAndDst(InnerProductDesc* desc) {
  for (MemoryDesc* tensor : {&desc->src, &desc->dst, &desc->bias}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  const MemoryDesc &src = desc->src, &dst = desc->dst;
  const int64_t image = src.dim(0) == 0 ? 0 : src.PaddedElementCount() / src.dim(0);
  if (!src.IsDense() || src.BlockSize(0) != 1 || src.stride(0) != image) {
    return absl::UnimplementedError("src is not one dense image after the other");
  }
  if (!dst.IsPlain() || dst.stride(1) != 1) return absl::UnimplementedError("dst is not nc");
  if (!desc->bias.IsZero() && (desc->bias.stride(0) != 1 || desc->bias.offset0() != 0)) {
    return absl::UnimplementedError("bias is not dense");
  }
  return absl::OkStatus();
}

TileConfig ConfigOf(const InnerProductDesc& desc, const PostOps& post_ops, const VectorUnit& unit,
                    bool last, int rows) {
  const int lanes = unit.lanes();
  const int64_t group = TileGenerator::MaxBlocks(unit) * lanes;
  const int64_t channels = last ? (desc.dst.dim(1) - 1) % group + 1 : group;
  TileConfig config{.epilogue = {.unit = unit}};
  config.k = desc.src.stride(0);
  config.src_row_bytes = config.k * sizeof(float);
  config.epilogue.blocks = static_cast<int>(DivUp(channels, lanes));
  config.epilogue.pixels = rows;
  config.epilogue.dst_block_bytes = lanes * sizeof(float);
  config.epilogue.dst_pixel_bytes = (last ? group : desc.dst.stride(0)) * sizeof(float);
  config.epilogue.bias = !desc.bias.IsZero();
  config.epilogue.tail_lanes = static_cast<int>(channels % lanes);
  config.epilogue.post_ops = post_ops;
  return config;
}

}  // namespace

absl::StatusOr<InnerProductDesc> ResolvePacked(const InnerProductDesc& desc,
                                               const Attributes& attributes,
                                               const ImplementationFacts& facts) {
  const int lanes = jit::VectorUnit::Of(facts.isa).lanes();
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, attributes));
  InnerProductDesc resolved = desc;
  ABSL_RETURN_IF_ERROR(ResolveSrcAndDst(&resolved));
  if (resolved.dst.ElementCount() == 0 || resolved.src.ElementCount() == 0) {
    return absl::UnimplementedError("nothing to compute");
  }
  // Every offset inside a tile is a 32-bit immediate.
  constexpr int64_t kMaxOffset = std::numeric_limits<int32_t>::max();
  if (resolved.src.stride(0) > kMaxOffset / 64 || resolved.dst.stride(0) > kMaxOffset / 16) {
    return absl::UnimplementedError("strides over 31 bits");
  }
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc packed,
                        MemoryDesc::CreatePattern(desc.weights.dims(), DataType::kF32,
                                                  WeightsPattern(resolved.src, lanes)));
  if (resolved.weights.IsAny()) resolved.weights = packed;
  if (resolved.weights != packed) {
    return absl::UnimplementedError(absl::StrCat("weights are not ", packed.ToString()));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePacked(const InnerProductDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  const int64_t rows = desc.src.dim(0);
  const int max_rows = TileGenerator::MaxRows(unit, attributes.post_ops);
  const int64_t group = TileGenerator::MaxBlocks(unit) * unit.lanes();
  PrimitiveInfo primitive_info = InfoOf(desc, attributes, facts);
  Packed::Generators generators;
  for (int tile_rows = 1; tile_rows <= max_rows; ++tile_rows) {
    const bool full = tile_rows == max_rows && rows >= max_rows;
    if (!full && rows % max_rows != tile_rows) continue;
    for (bool last : {false, true}) {
      if (!last && desc.dst.dim(1) <= group) continue;
      ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<TileGenerator>(
                                                facts.name, ConfigOf(desc, attributes.post_ops,
                                                                     unit, last, tile_rows)));
      primitive_info.code_bytes += generator->code_bytes();
      generators[{last, tile_rows}] = std::move(generator);
    }
  }
  return std::make_unique<Packed>(std::move(primitive_info), desc, unit, max_rows,
                                  attributes.post_ops.HasSum(), std::move(generators));
}

}  // namespace tilewire::inner_product
