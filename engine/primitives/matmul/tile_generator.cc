// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/matmul/tile_generator.h"

#include <cstddef>

namespace tilewire::matmul {
namespace {

constexpr int kUnroll = 4;

}  // namespace

int TileGenerator::MaxRows(const VectorUnit& unit, const PostOps& post_ops) {
  int rows = unit.registers() >= 32 ? 8 : 4;
  while (rows > 1 &&
         unit.registers() - kBlocks * rows < AccumulatorEpilogue::ScratchCount(post_ops)) {
    --rows;
  }
  return rows;
}

TileGenerator::TileGenerator(absl::string_view name, const TileConfig& config)
    : AccumulatorTile(name, config.epilogue), config_(config) {}

void TileGenerator::Emit() {
  mov(src_, ptr[args_ + offsetof(TileArgs, src)]);
  mov(weights_, ptr[args_ + offsetof(TileArgs, weights)]);
  mov(dst_, ptr[args_ + offsetof(TileArgs, dst)]);
  if (config_.epilogue.bias) mov(bias_, ptr[args_ + offsetof(TileArgs, bias)]);
  ZeroSums();
  EmitSteps(config_.k / kUnroll, kUnroll);
  EmitSteps(config_.k % kUnroll, 1);
  FinishSums(/*zero_tail=*/false);
  vzeroupper();
  ret();
  epilogue_.EmitTables();
}

void TileGenerator::EmitSteps(int64_t count, int unroll) {
  if (count == 0) return;
  Xbyak::Label next;
  mov(left_, count);
  L(next);
  for (int step = 0; step < unroll; ++step) EmitStep(step);
  add(src_, static_cast<int>(unroll * config_.src_k_bytes));
  add(weights_, static_cast<int>(unroll * config_.weights_k_bytes));
  dec(left_);
  jnz(next, T_NEAR);
}

// sums += src[k + step] * weights[k + step]
void TileGenerator::EmitStep(int step) {
  const int blocks = config_.epilogue.blocks;
  const Xbyak::Xmm source = Vector(Tile() + blocks);
  for (int b = 0; b < blocks; ++b) {
    const int64_t offset = step * config_.weights_k_bytes + b * config_.epilogue.unit.bytes();
    vmovups(Vector(Tile() + b), ptr[weights_ + static_cast<int>(offset)]);
  }
  for (int r = 0; r < config_.epilogue.pixels; ++r) {
    const int64_t offset = step * config_.src_k_bytes + r * config_.src_row_bytes;
    vbroadcastss(source, ptr[src_ + static_cast<int>(offset)]);
    for (int b = 0; b < blocks; ++b) {
      vfmadd231ps(Vector(b * config_.epilogue.pixels + r), Vector(Tile() + b), source);
    }
  }
}

}  // namespace tilewire::matmul
