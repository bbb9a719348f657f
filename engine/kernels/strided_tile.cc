// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/strided_tile.h"

#include <algorithm>
#include <cstddef>

namespace tilewire {
namespace {

constexpr int kStepsAtOnce = 4;

}  // namespace

int StridedTile::MaxRows(const VectorUnit& unit, const PostOps& post_ops, int blocks, int rows) {
  const int free = unit.registers() - AccumulatorEpilogue::ScratchCount(post_ops);
  return std::clamp(free / blocks, 1, rows);
}

StridedTile::StridedTile(absl::string_view name, const StridedTileConfig& config)
    : AccumulatorTile(name, config.epilogue), config_(config) {}

void StridedTile::Emit() {
  ZeroSums();
  mov(src_, ptr[args_ + offsetof(StridedTileArgs, src)]);
  mov(weights_, ptr[args_ + offsetof(StridedTileArgs, weights)]);
  mov(dst_, ptr[args_ + offsetof(StridedTileArgs, dst)]);
  if (config_.epilogue.bias) mov(bias_, ptr[args_ + offsetof(StridedTileArgs, bias)]);
  EmitSteps(config_.k / kStepsAtOnce, kStepsAtOnce);
  EmitSteps(config_.k % kStepsAtOnce, 1);
  FinishSums(/*zero_tail=*/false);
  vzeroupper();
  ret();
  epilogue_.EmitTables();
}

void StridedTile::EmitSteps(int64_t count, int unroll) {
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
void StridedTile::EmitStep(int step) {
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

}  // namespace tilewire
