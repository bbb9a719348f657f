// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/strided_tile.h"

#include <algorithm>
#include <cstddef>

namespace tilewire {
namespace {

constexpr int kStepsAtOnce = 4;

}  // namespace

int StridedTile::MaxRows(const VectorUnit& unit, const PostOps& post_ops, int blocks, int rows,
                         bool masks_weights) {
  constexpr int kForTails = 3;
  const int scratch = std::max(AccumulatorEpilogue::ScratchCount(post_ops), kForTails);
  const int for_sums = unit.registers() - scratch;
  const int masks = masks_weights && !unit.has_masks() ? 1 : 0;
  const int beside_weights = unit.registers() - blocks - 1 - masks;
  return std::clamp(std::min(for_sums, beside_weights) / blocks, 1, rows);
}

StridedTile::StridedTile(absl::string_view name, const StridedTileConfig& config)
    : AccumulatorTile(name, config.epilogue),
      config_(config),
      addend_tail_(this, config.epilogue.unit, {.spare = left_, .opmask = k3, .vector = 15}),
      weights_tail_(this, config.epilogue.unit,
                    {.spare = left_, .opmask = k4, .vector = Tile() + config.epilogue.blocks + 1}) {
}

void StridedTile::Emit() {
  EmitBegin();
  mov(src_, ptr[args_ + offsetof(StridedTileArgs, src)]);
  mov(weights_, ptr[args_ + offsetof(StridedTileArgs, weights)]);
  if (config_.weights_tail != 0) weights_tail_.Set(config_.weights_tail);
  EmitSums();
  if (config_.adds_parts) AddSumsBefore();
  if (config_.k == 0) EmitStop();
  LoadResultPointers(offsetof(StridedTileArgs, dst), offsetof(StridedTileArgs, bias));
  epilogue_.AddBias();
  epilogue_.ApplyPostOps(/*skip_sum=*/false);
  if (!config_.addend_row_bytes.empty()) AddAddends();
  config_.streams ? StreamSums() : epilogue_.Store();
  vzeroupper();
  ret();
  epilogue_.EmitTables();
  if (config_.addend_tail != 0) addend_tail_.EmitTable();
  if (config_.weights_tail != 0) weights_tail_.EmitTable();
}

// The sums before the first product.
void StridedTile::EmitBegin() {
  if (config_.k != 0) return ZeroSums();
  Xbyak::Label zero, begun;
  const size_t before = config_.adds_parts ? offsetof(StridedTileArgs, chain_before)
                                           : offsetof(StridedTileArgs, sums_before);
  mov(spare_, ptr[args_ + before]);
  test(spare_, spare_);
  jz(zero, T_NEAR);
  for (int i = 0; i < Tile(); ++i)
    vmovups(Vector(i), ptr[spare_ + i * config_.epilogue.unit.bytes()]);
  jmp(begun, T_NEAR);
  L(zero);
  ZeroSums();
  L(begun);
}

void StridedTile::AddSumsBefore() {
  Xbyak::Label none;
  mov(spare_, ptr[args_ + offsetof(StridedTileArgs, sums_before)]);
  test(spare_, spare_);
  jz(none, T_NEAR);
  for (int i = 0; i < Tile(); ++i)
    vaddps(Vector(i), Vector(i), ptr[spare_ + i * config_.epilogue.unit.bytes()]);
  L(none);
}

// Returns with the sums in memory, if calls ask for that.
void StridedTile::EmitStop() {
  Xbyak::Label ends;
  mov(spare_, ptr[args_ + offsetof(StridedTileArgs, sums_after)]);
  test(spare_, spare_);
  jz(ends, T_NEAR);
  for (int i = 0; i < Tile(); ++i)
    vmovups(ptr[spare_ + i * config_.epilogue.unit.bytes()], Vector(i));
  vzeroupper();
  ret();
  L(ends);
}

void StridedTile::StreamSums() {
  const EpilogueConfig& tile = config_.epilogue;
  for (int r = 0; r < tile.pixels; ++r) {
    for (int b = 0; b < tile.blocks; ++b) {
      const int64_t offset = r * tile.dst_pixel_bytes + b * tile.dst_block_bytes;
      vmovntps(ptr[dst_ + static_cast<int>(offset)], Sum(/*chain=*/0, b, r));
    }
  }
}

void StridedTile::AddAddends() {
  const Xbyak::Xmm addend = Vector(Tile()), other = Vector(Tile() + 1);
  const int count = static_cast<int>(config_.addend_row_bytes.size());
  for (int i = 0; i < count; ++i) {
    mov(addends_[i], ptr[args_ + static_cast<int>(offsetof(StridedTileArgs, addends) +
                                                  i * sizeof(const float*))]);
  }
  if (config_.addend_tail != 0) addend_tail_.Set(config_.addend_tail);
  for (int r = 0; r < config_.epilogue.pixels; ++r) {
    for (int b = 0; b < config_.epilogue.blocks; ++b) {
      const Xbyak::Xmm sum = Sum(/*chain=*/0, b, r);
      LoadAddend(0, b, r, addend);
      for (int i = 1; i < count; ++i) {
        LoadAddend(i, b, r, other);
        vaddps(addend, addend, other);
      }
      vaddps(sum, sum, addend);
    }
  }
}

void StridedTile::LoadAddend(int i, int block, int row, const Xbyak::Xmm& to) {
  const int64_t offset =
      row * config_.addend_row_bytes[i] + block * int64_t{config_.epilogue.unit.bytes()};
  const bool masked = config_.addend_tail != 0 && block == config_.epilogue.blocks - 1;
  addend_tail_.Load(to, ptr[addends_[i] + static_cast<int>(offset)], masked);
}

void StridedTile::EmitSums() {
  if (config_.k != 0) {
    for (const int unroll : {kStepsAtOnce, 1}) {
      const int64_t left = unroll == 1 ? config_.k % kStepsAtOnce : config_.k / kStepsAtOnce;
      if (left == 0) continue;
      mov(left_, left);
      EmitLoop(unroll);
    }
    return;
  }
  static_assert(kStepsAtOnce == 4);
  Xbyak::Label single, none;
  mov(left_, ptr[args_ + offsetof(StridedTileArgs, k)]);
  shr(left_, 2);
  jz(single, T_NEAR);
  EmitLoop(kStepsAtOnce);
  L(single);
  mov(left_, ptr[args_ + offsetof(StridedTileArgs, k)]);
  and_(left_, kStepsAtOnce - 1);
  jz(none, T_NEAR);
  EmitLoop(1);
  L(none);
}

// left_ times `unroll` steps, at least one.
void StridedTile::EmitLoop(int unroll) {
  Xbyak::Label next;
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
  for (int b = 0; b < blocks; ++b) {
    const int64_t offset = step * config_.weights_k_bytes + b * config_.epilogue.unit.bytes();
    const bool masked = config_.weights_tail != 0 && b == blocks - 1;
    weights_tail_.Load(Vector(Tile() + b), ptr[weights_ + static_cast<int>(offset)], masked);
    if (config_.weights_ahead_bytes != 0)
      prefetcht0(ptr[weights_ + static_cast<int>(offset + config_.weights_ahead_bytes)]);
  }
  AddProducts(/*chain=*/0, /*pairs=*/false, Tile(), Tile() + blocks, [&](int row) {
    return src_ + static_cast<int>(step * config_.src_k_bytes + row * config_.src_row_bytes);
  });
}

}  // namespace tilewire
