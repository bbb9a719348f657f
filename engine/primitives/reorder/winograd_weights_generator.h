// SPDX-License-Identifier: Apache-2.0
//
// Generates U = G w G^T for one block of output channels, input channel after input channel. Lanes
// are output channels; the arithmetic is in double and in the order of winograd_weights.cc.
#ifndef ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_
#define ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::reorder {

struct WinogradWeightsArgs {
  const float* taps;  // [input][3x3][lane]
  double* half;       // overwritten: [point along a side][3][lane]; aligned to vectors
  float* dst;         // first point of the first input
  int64_t point_bytes, input_bytes;  // steps of dst
  jit::LoopCount inputs;
  int64_t streams;  // nonzero: past the caches, to a dst that is aligned to vectors
};

class WinogradWeightsGenerator final : public jit::Generator {
 public:
  // `tile`: outputs along a side, 2 or 4. dst has the unit's lanes.
  WinogradWeightsGenerator(absl::string_view name, const VectorUnit& unit, int tile);

 private:
  void Emit() override;
  void LoadConstants();
  void EmitColumns(int part);
  void EmitRow(int row, bool streams);
  // `plus` and `even` become the products of G's rows `point` and `point` + 1 with the taps in
  // registers kTaps, kTaps + 1 and kTaps + 2.
  void EmitPair(int point, const Xbyak::Xmm& even, const Xbyak::Xmm& odd, const Xbyak::Xmm& plus);
  void StorePoint(const Xbyak::Xmm& low, const Xbyak::Xmm& high, bool streams);
  void EmitTable();

  static constexpr int kTaps = 6;

  int side() const { return tile_ + 2; }
  int vector_bytes() const { return unit_.bytes(); }
  Xbyak::Ymm Vector(int index) const { return unit_.Wide(index); }  // of doubles
  Xbyak::Xmm HalfVector(int index) const {                          // of as many floats
    return unit_.WithBytes(unit_.bytes() / 2).Vector(index);
  }
  // G's coefficients: one of point 0, and three of each pair of opposite points.
  Xbyak::Ymm Constant(int index) const { return Vector(9 + index); }
  int ConstantCount() const { return 1 + 3 * (tile_ / 2); }
  int HalfOffset(int point, int column, int part) const {
    return ((point * 3 + column) * 2 + part) * vector_bytes();
  }
  int TapOffset(int row, int column, int part) const {
    return (row * 3 + column) * vector_bytes() + part * vector_bytes() / 2;
  }

  // Arguments arrive in rdi.
  const Xbyak::Reg64 taps_ = rsi, half_ = rdx, dst_ = rcx, inputs_ = r8;
  const Xbyak::Reg64 point_step_ = r9, point_ = r10, table_ = rax;

  const VectorUnit unit_;
  const int tile_;
  Xbyak::Label constants_;
};

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_
