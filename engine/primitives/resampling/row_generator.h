// SPDX-License-Identifier: Apache-2.0
//
// Generates one row of outputs along the width: the weighted sum of up to four rows of src (depth
// and height), each sampled at one or two places.
//
// A cell is what lies at one pixel. In nhwc and nChw16c it is several channels side by side, which
// a vector takes together. In nchw it is one element; then a vector takes outputs that follow each
// other, and gathers their samples.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_
#define ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_

#include <cstdint>

#include "engine/base/check.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::resampling {

constexpr int kMaxRows = 4, kMaxSides = 2;

struct RowArgs {
  const float* rows[kMaxRows];
  float weights[kMaxRows];  // of the rows
  float* dst;
  // Tables of all outputs of a row: bytes from a row's start to the samples, and their weights.
  const int32_t* offsets[kMaxSides];
  const float* sides[kMaxSides];
  jit::LoopCount outputs;
};

struct RowConfig {
  VectorUnit unit;
  int rows = 1;      // at most kMaxRows
  int sides = 1;     // samples of an output in a row: at most kMaxSides
  int64_t cell = 1;  // elements
};

class RowGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const RowArgs*);
  RowGenerator(absl::string_view name, const RowConfig& config)
      : Generator(name),
        config_(config),
        tail_(this, config.unit, {.spare = spare_, .opmask = k2, .vector = 3}) {
    TILEWIRE_CHECK(config.rows <= kMaxRows && config.sides <= kMaxSides,
                   "a register for each row and side");
  }

 private:
  void Emit() override;
  void EmitCells();
  void EmitCell();
  void EmitCellVector(bool masked);
  void EmitGathers();
  void EmitGatherVector(bool masked);
  void AddRow(int row);
  int lanes() const { return config_.unit.lanes(); }
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }
  Xbyak::Xmm Side(int i) const { return Vector(4 + i); }  // weights along the width
  Xbyak::Xmm RowWeight(int i) const { return Vector(6 + i); }

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 rows_[kMaxRows] = {r12, r13, r14, r15};
  const Xbyak::Reg64 dst_ = rsi, outputs_ = rdx;
  const Xbyak::Reg64 tables_[2] = {r8, r9}, sides_[2] = {r10, r11};
  const Xbyak::Reg64 at_[2] = {rbx, rbp};          // bytes to the samples of this output
  const Xbyak::Reg64 column_ = rcx, spare_ = rax;  // column_: bytes into a cell, or into the tables
  const Xbyak::Opmask gathered_ = k3;
  static constexpr int kGathered = 11;  // the same in a vector register, where there are no masks

  const RowConfig config_;
  jit::TailMask tail_;
  const Xbyak::Xmm sum_ = Vector(0), value_ = Vector(1), other_ = Vector(2), index_ = Vector(10);
};

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_ROW_GENERATOR_H_
