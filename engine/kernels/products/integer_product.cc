// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/integer_product.h"

#include <algorithm>

#include "engine/kernels/tiles/matrix_tile.h"

namespace tilewire {
namespace {

constexpr int kBlockQuads = 16;  // a cache line of src

}  // namespace

IntegerTileKind::IntegerTileKind(cpu::Isa isa)
    : unit(VectorUnit::Of(isa)),
      products(ByteProductsOf(unit)),
      is_matrix(isa.Includes(cpu::Isa::kAmx)) {}

IntegerTileKind::IntegerTileKind(cpu::Isa isa, const MemoryDesc& weights) : IntegerTileKind(isa) {
  products = ByteProductsOf(unit, weights);
}

int IntegerTileKind::MaxBlocks() const {
  return is_matrix ? kMatrixBlocks : unit.registers() >= 32 ? 4 : 2;
}

int IntegerTileKind::MaxRows(const PostOps& post_ops) const {
  if (is_matrix) return kMatrixPixels;
  const int blocks = MaxBlocks();
  const int beside = std::max(blocks + 1, AccumulatorEpilogue::IntegerScratchCount(post_ops));
  return std::max(1, (unit.registers() - ExtraIntegerVectors(products) - beside) / blocks);
}

int64_t IntegerTileKind::step() const { return is_matrix ? kMatrixStepBytes : kQuad; }

void SetProductLoops(const IntegerTileKind& kind, int64_t k, int64_t src_row,
                     IntegerTileConfig* config) {
  const int lanes = kind.unit.lanes();
  config->products = kind.products;
  config->loops = {.channels = kBlockQuads,
                   .tail_channels = static_cast<int>(k / kQuad % kBlockQuads),
                   .full_blocks = k / kQuad >= kBlockQuads,
                   .tap_channels = kBlockQuads,
                   .src_pixel = src_row,
                   .src_block = kBlockQuads * kQuad,
                   .weights_oc_block = k * lanes,
                   .weights_ic_block = kBlockQuads * kQuad * lanes};
  if (kind.is_matrix) {
    config->loops.channels = config->loops.tap_channels = 1;
    config->loops.src_channel = kMatrixStepBytes;
    config->loops.weights_channel = kMatrixWeightsBytes;
  }
  config->input_blocks = k / kMatrixStepBytes;
  config->loops.taps.assign(config->epilogue.pixels, TapRange{0, 1});
}

TapLoopArgs ProductLoopArgs(int64_t k) {
  TapLoopArgs loops = {};
  loops.full_blocks = k / kQuad / kBlockQuads;
  loops.tail_blocks = k / kQuad % kBlockQuads != 0 ? 1 : 0;
  return loops;
}

absl::StatusOr<std::unique_ptr<const jit::Generator>> GenerateProductTile(
    const IntegerTileKind& kind, absl::string_view name, const IntegerTileConfig& config) {
  return kind.is_matrix ? GenerateMatrixTile(name, config) : GenerateIntegerTile(name, config);
}

}  // namespace tilewire
