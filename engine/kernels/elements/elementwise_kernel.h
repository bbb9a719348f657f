// SPDX-License-Identifier: Apache-2.0
//
// Functions of the elements that up to three tensors have at one index, with post-ops, as generated
// code over rows and columns of memory:
//
//   dst = postops(f(operand 0, operand 1, operand 2))
//
// Operands may be broadcast along rows or columns. A primitive derives a generator that emits f
// from ElementwiseGenerator, and runs it through ElementwisePlan::Run (elementwise_plan.h).
//
// Tensors are of any type but halves, each of its own: element_lanes.h says how registers hold
// them. Lanes have 8 bytes if a tensor's elements have. Post-ops are for f32.
//
// Generators are used by one thread.
#ifndef ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_KERNEL_H_
#define ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_KERNEL_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/elements/element_lanes.h"
#include "engine/memory/data_type.h"

namespace tilewire {

constexpr int kMaxElementwiseOperands = 3;
constexpr int kFewElementwiseVectors = 2;  // of a row, at most, where the columns are few

struct ElementwiseArgs {
  std::byte* dst;
  const std::byte* operands[kMaxElementwiseOperands];
  jit::LoopCount rows, columns;
};

struct ElementwiseConfig {
  struct Operand {
    bool broadcast = false;  // one element stands for all columns of a row
    int64_t row_bytes = 0;   // from row to row
    DataType type = DataType::kF32;
  };
  jit::VectorUnit unit;
  std::vector<Operand> operands;
  int64_t dst_row_bytes = 0;
  int64_t columns = 0;  // of every row, where they are few; 0: the arguments tell
  PostOps post_ops;
  DataType dst_type = DataType::kF32;
  int least_lane_bytes = 4;  // 4 or 8: what values between operands and dst need

  int LaneBytes() const;
  // Whether the tail of a row is computed under a mask, and not element by element.
  bool MasksTail() const;
};

class ElementwiseGenerator : public jit::Generator {
 public:
  using Function = void (*)(const ElementwiseArgs*);

 protected:
  ElementwiseGenerator(absl::string_view name, const ElementwiseConfig& config);
  const jit::VectorUnit& unit() const { return config_.unit; }
  const ElementLanes& lanes() const { return lanes_; }
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // Before all rows: what EmitFunction() wants to find in the registers kConstants, which nothing
  // else uses where there are no post-ops.
  virtual void EmitConstants() {}
  static constexpr int kConstants[] = {7, 15};
  // More of them, where there is one operand and its elements follow each other.
  static constexpr int kMoreConstants[] = {5, 6, 8, 10, 11, 12, 13};
  // Emits, after all code, the tables that EmitFunction()'s code reads.
  virtual void EmitTables() {}
  // value = f(value, others): value holds operand 0, others the rest. `spare` may be overwritten.
  virtual void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                            const Xbyak::Xmm& spare) = 0;
  const Xbyak::Opmask spare_mask_ = k3;

 private:
  using Part = ElementLanes::Part;

  // A vector of dst in register `value`, `row` rows and `vector` vectors after the pointers.
  struct Slot {
    int value, row, vector;
    Part part = Part::kWhole;
  };

  void Emit() override;
  void EmitFewColumns();
  void EmitManyColumns();
  void EmitSlots(const std::vector<Slot>& slots);
  void EmitPostOps(const std::vector<Slot>& slots);
  void EmitAdvance(int rows);
  void SetTail();
  void Hoist(int vectors, bool per_row);
  void LoadOperand(int operand, const Slot& slot, const Xbyak::Xmm& to);
  Xbyak::Xmm Hoisted(int operand, int vector) const;
  bool IsHoisted(int operand) const;
  // The last vector of few columns may be a tail.
  Part PartOf(int vector) const;
  Xbyak::RegExp At(const Xbyak::Reg64& base, DataType type, int64_t row_bytes,
                   const Slot& slot) const;

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 dst_ = rsi, operands_[kMaxElementwiseOperands] = {rdx, r8, r9};
  const Xbyak::Reg64 rows_ = r10, left_ = r11, spare_ = rax;
  const Xbyak::Reg64 column_ = rcx;  // in elements

  const ElementwiseConfig config_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one per post-op; null for a sum
  ElementLanes lanes_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_KERNEL_H_
