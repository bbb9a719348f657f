// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/tiles/block_unit.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/deconvolution/direct_driver.h"
#include "engine/primitives/deconvolution/geometry.h"
#include "engine/primitives/deconvolution/implementations.h"
#include "engine/primitives/deconvolution/tile_loop.h"

namespace tilewire::deconvolution {
namespace {

// Tiles of dst whose lanes are output channels: `pixels` outputs of a row or of a column, `stride`
// apart, times one or two blocks of output channels (tile_loop.h).
struct TileConfig {
  TileLoopConfig loop;
  int64_t weights_oc_block_bytes = 0;  // from output block to output block
  int64_t src_pixel_bytes = 0;         // from output to output
  EpilogueConfig epilogue;             // unit, blocks, pixels, strides of dst, bias, post-ops
};

class TileGenerator final : public TileLoop {
 public:
  TileGenerator(absl::string_view name, const TileConfig& config)
      : TileLoop(name, config.epilogue, config.loop), config_(config) {}

  static constexpr int kMaxBlocks = 2;
  // The most outputs of a tile that leave enough registers for the post-ops.
  static int MaxPixels(const VectorUnit& unit, const PostOps& post_ops) {
    const int needed = std::max(kMaxBlocks + 1, AccumulatorEpilogue::ScratchCount(post_ops));
    return (unit.registers() - needed) / kMaxBlocks;
  }

 private:
  void EmitTile() override {
    PrefetchDst();
    ZeroSums();
    EmitTaps();
    FinishSums(/*zero_tail=*/true);
  }

  void EmitBlock(int channels) override {
    const int lanes = config_.epilogue.unit.lanes(), blocks = config_.epilogue.blocks;
    for (int ic = 0; ic < channels; ++ic) {
      for (int b = 0; b < blocks; ++b) {
        const int64_t offset = b * config_.weights_oc_block_bytes + ic * lanes * 4;
        vmovups(OfBlock(b, Tile() + b), ptr[weights_ + static_cast<int>(offset)]);
      }
      AddProducts(/*chain=*/0, /*pairs=*/false, Tile(), Tile() + blocks, [&](int pixel) {
        return src_ + static_cast<int>(pixel * config_.src_pixel_bytes + ic * 4);
      });
    }
  }

  // Rows of dst are written with gaps, where other phases lie; the cache does not see them coming.
  void PrefetchDst() {
    const EpilogueConfig& tile = config_.epilogue;
    for (int b = 0; b < tile.blocks; ++b) {
      for (int p = 0; p < tile.pixels; ++p) {
        const int64_t offset = b * tile.dst_block_bytes + p * tile.dst_pixel_bytes;
        prefetchw(ptr[dst_ + static_cast<int>(offset)]);
      }
    }
  }

  // A register of an output block, as wide as the block's channels need (block_unit.h).
  Xbyak::Xmm OfBlock(int block, int index) const override {
    const EpilogueConfig& tile = config_.epilogue;
    return UnitOfBlock(tile.unit, block == tile.blocks - 1 ? tile.tail_lanes : 0).Vector(index);
  }

  // Vectors: the tile's sums, then weights of one input channel, then an element of src.
  const TileConfig config_;
};

constexpr int64_t kFloatBytes = sizeof(float);

// Taps are outermost. The weights of one tap, which a row of tiles reads again and again, then lie
// without gaps: taps between them would leave a few sets of the first cache to all of them.
std::string WeightsPattern(const DeconvolutionDesc& desc, int64_t lanes) {
  const std::string spatial = std::string("cdefg").substr(0, desc.src.rank() - 2);
  if (desc.weights.rank() == desc.src.rank()) {
    return absl::StrCat(spatial, "AB", lanes, "b", lanes, "a");
  }
  const std::string grouped = std::string("defgh").substr(0, desc.src.rank() - 2);
  return absl::StrCat("a", grouped, "BC", lanes, "c", lanes, "b");
}

TileConfig ConfigOf(const DeconvolutionDesc& desc, const PostOps& post_ops, const VectorUnit& unit,
                    const TileShape& tile) {
  const int64_t lanes = unit.lanes();
  const Geometry geometry = GeometryOf(desc);
  const int group_dims = geometry.grouped_weights ? 1 : 0;
  const int64_t blocks = DivUp(geometry.oc, lanes);
  const Axis &height = geometry.axes[1], &width = geometry.axes[2];
  TileConfig config{.epilogue = {.unit = unit}};
  config.weights_oc_block_bytes = desc.weights.stride(group_dims) * kFloatBytes;
  config.src_pixel_bytes = (tile.is_column ? height.src_stride : lanes) * kFloatBytes;
  EpilogueConfig& epilogue = config.epilogue;
  epilogue.blocks = static_cast<int>(tile.last ? (blocks - 1) % TileGenerator::kMaxBlocks + 1
                                               : TileGenerator::kMaxBlocks);
  epilogue.pixels = static_cast<int>(tile.pixels);
  epilogue.dst_block_bytes = desc.dst.stride(1) * kFloatBytes;
  epilogue.dst_pixel_bytes =
      (tile.is_column ? height.stride * height.dst_stride : width.stride * lanes) * kFloatBytes;
  epilogue.bias = !desc.bias.IsZero();
  epilogue.tail_lanes = tile.last ? static_cast<int>(geometry.oc % lanes) : 0;
  epilogue.post_ops = post_ops;
  config.loop = {.ic_blocks = geometry.ic / lanes,
                 .tail_channels = static_cast<int>(geometry.ic % lanes),
                 .src_block_bytes = desc.src.stride(1) * kFloatBytes,
                 .weights_block_bytes = desc.weights.stride(group_dims + 1) * kFloatBytes,
                 .src_tile_bytes = tile.pixels * config.src_pixel_bytes,
                 .dst_tile_bytes = tile.pixels * epilogue.dst_pixel_bytes};
  return config;
}

}  // namespace

absl::Status RequireForwardF32(const DeconvolutionDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.weights, desc.bias, desc.dst));
  return RequireNoOutputScales(attributes);
}

absl::StatusOr<DeconvolutionDesc> ResolveDirect(const Request<DeconvolutionDesc>& request) {
  const DeconvolutionDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireForwardF32(desc, request.attributes));
  const int64_t lanes = VectorUnit::Of(request.facts.isa).lanes();
  ABSL_ASSIGN_OR_RETURN(const DeconvolutionDesc resolved,
                        ResolveTiles(desc, {.lanes = lanes,
                                            .dst = BlockedPattern(desc.src.rank(), lanes),
                                            .weights = WeightsPattern(desc, lanes)}));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.dst, lanes));
  const Geometry geometry = GeometryOf(resolved);
  if (geometry.groups > 1 && (geometry.ic % lanes != 0 || geometry.oc % lanes != 0)) {
    return Unimplemented("takes groups of multiples of ", lanes, " channels, not of ", geometry.ic,
                         " and ", geometry.oc);
  }
  return resolved;
}

// Steps of an FMA: a vector of outputs takes one for each tap and input channel, and a few to be
// stored.
double CostDirect(const Request<DeconvolutionDesc>& resolved) {
  constexpr double kStore = 6;
  const Geometry geometry = GeometryOf(resolved.desc);
  const VectorUnit unit = VectorUnit::Of(resolved.facts.isa);
  const auto [outputs, taps] = WorkOf(geometry);
  const double vectors =
      static_cast<double>(geometry.groups * DivUp(geometry.oc, int64_t{unit.lanes()})) * outputs;
  return vectors * (static_cast<double>(geometry.ic) * taps + kStore) /
         resolved.machine.FmasPerCycle(unit.bytes());
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDirect(const Request<DeconvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const PostOps& post_ops = request.attributes.post_ops;
  const Blocking blocking = {.src_lanes = unit.lanes(),
                             .dst_lanes = unit.lanes(),
                             .tile_blocks = TileGenerator::kMaxBlocks,
                             .tile_pixels = TileGenerator::MaxPixels(unit, post_ops),
                             .has_columns = true};
  return CreateDriver(InfoOf(request), request.desc, blocking, [&](const TileShape& tile) {
    return jit::Compile<TileGenerator>(request.facts.name,
                                       ConfigOf(request.desc, post_ops, unit, tile));
  });
}

}  // namespace tilewire::deconvolution
