// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reduction/kernel_generator.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/checked_math.h"
#include "engine/jit/extremum.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/reduction/implementations.h"

namespace tilewire::reduction {

KernelGenerator::KernelGenerator(absl::string_view name, const KernelConfig& config)
    : Generator(name),
      config_(config),
      math_(this, config.unit, rax, k1),
      tail_(this, config.unit, {.spare = r11, .opmask = k2, .vector = 15}) {}

void KernelGenerator::Emit() {
  Preamble();
  mov(src_, ptr[rdi + offsetof(KernelArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(KernelArgs, dst)]);
  math_.LoadTable();
  if (config_.line > 0) {
    EmitLine();
  } else {
    EmitColumns();
  }
  Postamble();
  math_.EmitTable();
  tail_.EmitTable();
}

template <typename Body>
void KernelGenerator::Loop(const Xbyak::Reg64& counter, int64_t count, Body body) {
  if (count == 0) return;
  Xbyak::Label next;
  mov(counter, count);
  L(next);
  body();
  dec(counter);
  jnz(next, T_NEAR);
}

template <typename Body>
void KernelGenerator::LoopInBlocks(const Xbyak::Reg64& counter, const Xbyak::Reg64& blocks,
                                   int64_t count, int64_t additions, Body body) {
  if (!is_long() || count <= kBlock / std::max<int64_t>(1, additions))
    return Loop(counter, count, body);
  const int64_t block = std::max<int64_t>(1, kBlock / std::max<int64_t>(1, additions));
  Loop(blocks, count / block, [&] {
    Loop(counter, block, body);
    MoveToTotals();
  });
  Loop(counter, count % block, body);
}

void KernelGenerator::MoveToTotals() {
  for (int i = 0; i < kChains * kUnroll; ++i) {
    vaddps(scratch_[i % kUnroll], scratch_[i % kUnroll], Vector(i));
    math_.Load(Vector(i), 0);
  }
}

bool KernelGenerator::SumsPlainly() const {
  if (IsNorm(config_.algorithm)) return config_.p == 1 || config_.p == 2;
  return !IsExtremum(config_.algorithm) && config_.algorithm != ReductionAlgorithm::kMul;
}

void KernelGenerator::EmitColumns() {
  mov(left_, ptr[rdi + offsetof(KernelArgs, columns)]);
  for (int vectors : {kUnroll, 1}) {
    EmitWhileLeft(this, left_, vectors * lanes(), [&] {
      EmitColumnVectors(vectors, /*masked=*/false);
      add(src_, vectors * vector_bytes());
      add(dst_, vectors * vector_bytes());
    });
  }
  EmitIfLeft(this, left_, [&] {
    tail_.Set(left_);
    EmitColumnVectors(1, /*masked=*/true);
  });
}

// Results: chain * kUnroll + vector.
void KernelGenerator::EmitColumnVectors(int vectors, bool masked) {
  const int64_t stride = config_.inner.stride_bytes, pairs = config_.inner.count / kChains;
  StartResults();
  const auto step = [&](int chain) {
    for (int v = 0; v < vectors; ++v) {
      EmitSum(Vector(chain * kUnroll + v), ptr[inner_at_ + v * vector_bytes()], masked);
    }
    add(inner_at_, static_cast<int>(stride));
  };
  mov(outer_at_, src_);
  LoopInBlocks(outer_left_, outer_blocks_, config_.outer.count, pairs + 1, [&] {
    mov(inner_at_, outer_at_);
    LoopInBlocks(inner_left_, inner_blocks_, pairs, 1, [&] {
      for (int chain = 0; chain < kChains; ++chain) step(chain);
    });
    if (config_.inner.count % kChains != 0) step(0);
    add(outer_at_, static_cast<int>(config_.outer.stride_bytes));
  });
  TakeTotals();
  for (int v = 0; v < vectors; ++v) {
    Combine(Vector(v), Vector(kUnroll + v));
    Finish(Vector(v));
    tail_.Store(ptr[dst_ + v * vector_bytes()], Vector(v), masked);
  }
}

void KernelGenerator::StartResults() {
  for (int i = 0; i < kChains * kUnroll; ++i)
    math_.Load(Vector(i), NeutralElement(config_.algorithm));
  for (int i = 0; is_long() && i < kUnroll; ++i) math_.Load(scratch_[i], 0);
}

void KernelGenerator::TakeTotals() {
  for (int i = 0; is_long() && i < kUnroll; ++i) vaddps(Vector(i), Vector(i), scratch_[i]);
}

void KernelGenerator::EmitLine() {
  StartResults();
  if (config_.line % lanes() != 0) {
    mov(left_, config_.line % lanes());
    tail_.Set(left_);
  }
  const int64_t of_part = DivUp(config_.line, int64_t{kUnroll} * lanes());
  mov(outer_at_, src_);
  LoopInBlocks(outer_left_, outer_blocks_, config_.outer.count, config_.inner.count * of_part, [&] {
    mov(inner_at_, outer_at_);
    LoopInBlocks(inner_left_, inner_blocks_, config_.inner.count, of_part, [&] {
      EmitLinePart();
      add(inner_at_, static_cast<int>(config_.inner.stride_bytes));
    });
    add(outer_at_, static_cast<int>(config_.outer.stride_bytes));
  });
  TakeTotals();
  Combine(Vector(0), Vector(1));
  Combine(Vector(2), Vector(3));
  Combine(Vector(0), Vector(2));
  CombineLanes();
  Finish(Vector(0));
  vmovss(ptr[dst_], Xbyak::Xmm(0));
}

void KernelGenerator::EmitLinePart() {
  const int64_t steps = config_.line / (kUnroll * lanes());
  const int64_t rest = config_.line % (kUnroll * lanes());
  mov(left_, inner_at_);
  LoopInBlocks(line_left_, line_blocks_, steps, 1, [&] {
    for (int v = 0; v < kUnroll; ++v) EmitSum(Vector(v), ptr[left_ + v * vector_bytes()], false);
    add(left_, kUnroll * vector_bytes());
  });
  const int vectors = static_cast<int>(rest / lanes());
  for (int v = 0; v < vectors; ++v) EmitSum(Vector(v), ptr[left_ + v * vector_bytes()], false);
  if (rest % lanes() != 0) EmitSum(Vector(vectors), ptr[left_ + vectors * vector_bytes()], true);
}

// result = f(result, element), where the lanes outside of the mask hold the neutral element.
void KernelGenerator::EmitSum(const Xbyak::Xmm& result, const Xbyak::Address& from, bool masked) {
  const float neutral = NeutralElement(config_.algorithm);
  if (!masked) {
    vmovups(x_, from);
  } else if (config_.unit.has_masks()) {
    math_.Load(x_, neutral);
    tail_.LoadInto(x_, from);
  } else {
    tail_.Load(x_, from);
    if (neutral != 0) {
      math_.Load(spare_vector_, neutral);
      tail_.ReplaceOthers(x_, spare_vector_);
    }
  }
  if (IsNorm(config_.algorithm)) RaiseToPower(x_);
  Combine(result, x_);
}

void KernelGenerator::RaiseToPower(const Xbyak::Xmm& x) {
  if (config_.p == 2) return vmulps(x, x, x);
  math_.Abs(x);
  if (config_.p != 1) math_.Pow(x, config_.p, scratch_);
}

void KernelGenerator::Combine(const Xbyak::Xmm& result, const Xbyak::Xmm& other) {
  if (IsExtremum(config_.algorithm)) {
    const bool is_max = config_.algorithm == ReductionAlgorithm::kMax;
    return jit::EmitExtremum(this, config_.unit, is_max, result, other, scratch_[0], scratch_[1],
                             ordered_);
  }
  if (config_.algorithm == ReductionAlgorithm::kMul) return vmulps(result, result, other);
  vaddps(result, result, other);
}

// Combines all lanes of vector 0 in the first.
void KernelGenerator::CombineLanes() {
  const Xbyak::Xmm result = Vector(0), half = Vector(1);
  config_.unit.FoldLanes(this, result, half, [&] { Combine(result, half); });
}

void KernelGenerator::Finish(const Xbyak::Xmm& result) {
  if (config_.algorithm == ReductionAlgorithm::kMean) {
    math_.Load(x_, static_cast<float>(config_.reduced_count));
    return vdivps(result, result, x_);
  }
  if (!IsNorm(config_.algorithm)) return;
  if (AddsEps(config_.algorithm)) {
    vaddps(result, result, math_.Constant(config_.eps));
  } else {
    math_.AtLeast(result, config_.eps, x_);
  }
  if (!TakesRoot(config_.algorithm) || config_.p == 1) return;
  if (config_.p == 2) return vsqrtps(result, result);
  math_.Pow(result, 1 / config_.p, scratch_);
}

}  // namespace tilewire::reduction
