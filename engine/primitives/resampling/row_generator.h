// SPDX-License-Identifier: Apache-2.0
//
// Generates one row of outputs along the width: the weighted sum of up to four rows of src (depth
// and height), each sampled at one or two places.
//
// A cell is what lies at one pixel: several channels, one after the other (nhwc, nChw16c), which a
// vector takes together, or, with a cell of 1 (nchw), nothing but the pixel: then a vector takes
// outputs that follow each other and gathers their samples.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_
#define ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_

#include <cstdint>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"

namespace tilewire::resampling {

constexpr int kMaxRows = 4;

struct RowArgs {
  const float* rows[kMaxRows];
  float weights[kMaxRows];  // of the rows
  float* dst;
  // Tables of all outputs of a row: bytes from a row's start to the samples, and their weights.
  const int32_t* offsets[2];
  const float* sides[2];
  int64_t outputs;
};

struct RowConfig {
  cpu::Isa isa = cpu::Isa::kAvx512;
  int rows = 1;      // 1, 2 or 4
  int sides = 1;     // samples of an output in a row: 1 or 2
  int64_t cell = 1;  // elements
};

class RowGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const RowArgs*);
  RowGenerator(absl::string_view name, const RowConfig& config)
      : Generator(name), config_(config) {}

 private:
  void Emit() override;
  void EmitCells();
  void EmitCell();
  void EmitCellVector(bool masked);
  void EmitGathers();
  void EmitGatherVector(bool masked);
  void LoadMask(const Xbyak::Reg64& count);
  void AddRow(int row);
  void Store(const Xbyak::Address& to, bool masked);
  bool is_avx512() const { return config_.isa >= cpu::Isa::kAvx512; }
  int lanes() const { return is_avx512() ? 16 : 8; }
  Xbyak::Xmm Vector(int index) const {
    return Xbyak::Xmm(is_avx512() ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM, index);
  }
  Xbyak::Xmm Side(int i) const { return Vector(4 + i); }  // weights along the width
  Xbyak::Xmm RowWeight(int i) const { return Vector(6 + i); }

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 rows_[kMaxRows] = {r12, r13, r14, r15};
  const Xbyak::Reg64 dst_ = rsi, outputs_ = rdx;
  const Xbyak::Reg64 tables_[2] = {r8, r9}, sides_[2] = {r10, r11};
  const Xbyak::Reg64 at_[2] = {rbx, rbp};          // bytes to the samples of this output
  const Xbyak::Reg64 column_ = rcx, spare_ = rax;  // column_: bytes into a cell, or into the tables
  const Xbyak::Opmask mask_ = k2, gathered_ = k3;

  const RowConfig config_;
  const Xbyak::Xmm sum_ = Vector(0), value_ = Vector(1), other_ = Vector(2), lane_mask_ = Vector(3);
  const Xbyak::Xmm index_ = Vector(10), gather_mask_ = Vector(11);
  Xbyak::Label lane_table_;
};

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_
