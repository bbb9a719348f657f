// SPDX-License-Identifier: Apache-2.0
//
// The loops that generated code of this folder shares: over a row, vector by vector and four of
// them in a group, and sums over a row in four vectors. Rows consist of `size` >= 1 elements that
// follow each other.
// Registers: at_ (rcx) counts the bytes into a row; rax and the masks k1 and k2 are overwritten.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROW_LOOPS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROW_LOOPS_H_

#include <cstdint>

#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"

namespace tilewire::layer_normalization {

class RowLoops : public jit::Generator {
 protected:
  static constexpr int kUnroll = 4;

  // `tail_vector` holds the mask of a row's end where the unit has no mask registers.
  RowLoops(absl::string_view name, const VectorUnit& unit, int64_t size, int tail_vector)
      : Generator(name),
        unit_(unit),
        size_(size),
        math_(this, unit, rax, k1),
        tail_(this, unit, {.spare = at_, .opmask = k2, .vector = tail_vector}) {}

  // Around the code of all rows.
  void LoadTables() {
    math_.LoadTable();
    if (TailLanes() != 0) tail_.Set(TailLanes());
  }
  void EmitTables() {
    math_.EmitTable();
    if (TailLanes() != 0) tail_.EmitTable();
  }

  // Calls `body` for every vector of a row, at_ holding the bytes to vector 0 of its group of four.
  template <typename Body>
  void ForEachVector(Body body) {
    const int64_t group = kUnroll * unit_.lanes(), rest = size_ % group;
    const int64_t grouped_bytes = (size_ - rest) * 4;
    xor_(at_, at_);
    if (grouped_bytes > 0) {
      Xbyak::Label next;
      L(next);
      for (int v = 0; v < kUnroll; ++v) body(v, false);
      add(at_, kUnroll * unit_.bytes());
      cmp(at_, static_cast<int>(grouped_bytes));
      jl(next, T_NEAR);
    }
    const int vectors = static_cast<int>(rest / unit_.lanes());
    for (int v = 0; v < vectors; ++v) body(v, false);
    if (TailLanes() != 0) body(vectors, true);
  }

  void ClearSums(int count) {
    for (int v = 0; v < count; ++v) unit_.Zero(this, Vector(v));
  }

  // to = the sum of all lanes of kUnroll vectors from `first` on, divided by size, in every lane.
  void CombineSums(int first, const Xbyak::Xmm& to) {
    const Xbyak::Xmm sum = Vector(first), half = Vector(first + 1);
    vaddps(sum, sum, half);
    vaddps(Vector(first + 2), Vector(first + 2), Vector(first + 3));
    vaddps(sum, sum, Vector(first + 2));
    unit_.FoldLanes(this, sum, half, [&] { vaddps(sum, sum, half); });
    const Xbyak::Xmm quotient(to.getIdx());
    math_.Load(half, static_cast<float>(size_));
    vdivss(quotient, Xbyak::Xmm(sum.getIdx()), Xbyak::Xmm(half.getIdx()));
    vbroadcastss(to, quotient);
  }

  // factor = 1 / sqrt(factor + epsilon), where all lanes hold the variance: of one lane, because
  // roots and quotients of whole vectors take longer. Overwrites `spare`.
  void EmitFactor(const Xbyak::Xmm& factor, float epsilon, const Xbyak::Xmm& spare) {
    const Xbyak::Xmm one_lane(factor.getIdx()), one(spare.getIdx());
    vaddps(factor, factor, math_.Constant(epsilon));
    vsqrtss(one_lane, one_lane, one_lane);
    math_.Load(spare, 1);
    vdivss(one_lane, one, one_lane);
    vbroadcastss(factor, one_lane);
  }

  Xbyak::Address At(const Xbyak::Reg64& base, int unroll) {
    return ptr[base + at_ + unroll * unit_.bytes()];
  }
  int TailLanes() const { return static_cast<int>(size_ % unit_.lanes()); }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }

  const Xbyak::Reg64 at_ = rcx;
  const VectorUnit unit_;
  const int64_t size_;
  jit::VectorMath math_;
  jit::TailMask tail_;
};

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROW_LOOPS_H_
