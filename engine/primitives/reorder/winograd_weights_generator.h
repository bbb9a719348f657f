// SPDX-License-Identifier: Apache-2.0
//
// Generates U = G w G^T for one block of output channels, input channel after input channel: lanes
// are output channels, the arithmetic is in double, in the order of winograd_weights.cc.
#ifndef ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_
#define ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_

#include <cstdint>

#include "absl/strings/string_view.h"
#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"

namespace tilewire::reorder {

struct WinogradWeightsArgs {
  const float* taps;  // [input][3x3][lane]
  double* half;       // overwritten: [point along a side][3][lane]; on the boundary of a vector
  float* dst;         // first point of the first input
  int64_t point_bytes, input_bytes;  // steps of dst
  int64_t inputs;                    // >= 1
  int64_t streams;  // nonzero: past the caches, to a dst on the boundary of a vector
};

class WinogradWeightsGenerator final : public jit::Generator {
 public:
  // `tile`: outputs along a side, 2 or 4. 16 lanes on AVX-512, 8 on AVX2.
  WinogradWeightsGenerator(absl::string_view name, cpu::Isa isa, int tile);

 private:
  void Emit() override;
  void LoadConstants();
  void EmitColumns(int part);
  void EmitRow(int row, bool streams);
  // G's rows `point` and the next times the taps in registers kTaps, kTaps + 1, kTaps + 2: `plus`
  // and `even`.
  void EmitPair(int point, const Xbyak::Xmm& even, const Xbyak::Xmm& odd, const Xbyak::Xmm& plus);
  void StorePoint(const Xbyak::Xmm& low, const Xbyak::Xmm& high, bool streams);
  void EmitTable();

  static constexpr int kTaps = 6;

  int side() const { return tile_ + 2; }
  int vector_bytes() const { return isa_ >= cpu::Isa::kAvx512 ? 64 : 32; }
  Xbyak::Ymm Vector(int index) const;      // of doubles
  Xbyak::Xmm HalfVector(int index) const;  // of as many floats
  // G's coefficients: of point 0, and three of each pair of opposite points.
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

  const cpu::Isa isa_;
  const int tile_;
  Xbyak::Label constants_;
};

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_WINOGRAD_WEIGHTS_GENERATOR_H_
