// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/product_tile.h"

#include <cstddef>

namespace tilewire {
namespace {

constexpr int kFetchedBytes = 64;
// Weights that are read once, and so come from memory, are asked for so many bytes ahead.
constexpr int kStreamAhead = 2048;

}  // namespace

ProductTile::Size ProductTile::SizeFor(const VectorUnit& unit, const PostOps& post_ops,
                                       int64_t most_rows) {
  const int registers = unit.registers();
  Size size = {2, 2};
  if (registers >= 32) size = {4, 3};
  if (registers >= 32 && most_rows == 4) size = {3, 4};
  if (registers >= 32 && (most_rows == 5 || most_rows == 6)) size = {2, 6};
  // After the loop all but the first chain are free for the post-ops.
  const int scratch = AccumulatorEpilogue::ScratchCount(post_ops);
  while (size.rows > 1 && registers - size.blocks * size.rows < scratch) --size.rows;
  return size;
}

ProductTile::ProductTile(absl::string_view name, const ProductTileConfig& config)
    : AccumulatorTile(name, config.epilogue), config_(config) {}

void ProductTile::Emit() {
  Preamble();
  EmitPointers();
  EmitSums();
  LoadResultPointers(offsetof(ProductTileArgs, dst), offsetof(ProductTileArgs, bias));
  FinishSums(/*zero_tail=*/false);
  Postamble();
  epilogue_.EmitTables();
}

void ProductTile::EmitPointers() {
  const int block_bytes = static_cast<int>(config_.k * config_.epilogue.unit.bytes());
  if (config_.fetches_ahead) {
    mov(ahead_, ptr[args_ + offsetof(ProductTileArgs, ahead)]);
    mov(ahead_bytes_, ptr[args_ + offsetof(ProductTileArgs, ahead_bytes)]);
  }
  mov(weights_[0], ptr[args_ + offsetof(ProductTileArgs, weights)]);
  for (int b = 1; b < config_.epilogue.blocks; ++b)
    lea(weights_[b], ptr[weights_[b - 1] + block_bytes]);
  mov(rows_[0], ptr[args_ + offsetof(ProductTileArgs, src)]);
  for (int r = 1; r < config_.epilogue.pixels; ++r) {
    lea(rows_[r], ptr[rows_[r - 1] + static_cast<int>(config_.src_row_bytes)]);
  }
}

void ProductTile::EmitSums() {
  ZeroSums(kChains);
  if (config_.k >= kChains) {
    const int vector_bytes = config_.epilogue.unit.bytes();
    Xbyak::Label step;
    mov(left_, config_.k / kChains);
    L(step);
    if (config_.fetches_ahead) {
      prefetcht1(ptr[ahead_]);
      add(ahead_, ahead_bytes_);
    }
    for (int chain = 0; chain < kChains; ++chain) EmitStep(chain);
    for (int b = 0; b < config_.epilogue.blocks; ++b) add(weights_[b], kChains * vector_bytes);
    for (int r = 0; r < config_.epilogue.pixels; ++r) add(rows_[r], kChains * 4);
    dec(left_);
    jnz(step, T_NEAR);
  }
  if (config_.k % kChains != 0) EmitStep(0);
  for (int i = 0; i < Tile(); ++i) vaddps(Vector(i), Vector(i), Vector(Tile() + i));
}

// sums of `chain` += src[k + chain] * weights[k + chain]
void ProductTile::EmitStep(int chain) {
  const int blocks = config_.epilogue.blocks, last = config_.epilogue.unit.registers() - 1;
  const int weights = last - blocks;
  for (int b = 0; b < blocks; ++b) {
    const int bytes = chain * config_.epilogue.unit.bytes();
    vmovups(Vector(weights + b), ptr[weights_[b] + bytes]);
    if (!config_.fetches_ahead && bytes % kFetchedBytes == 0)
      prefetcht0(ptr[weights_[b] + bytes + kStreamAhead]);
  }
  AddProducts(chain, config_.pairs, weights, last, [&](int row) { return rows_[row] + chain * 4; });
}

}  // namespace tilewire
