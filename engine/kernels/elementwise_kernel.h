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
// Generators are used by one thread.
#ifndef ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_
#define ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/types/span.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"

namespace tilewire {

constexpr int kMaxElementwiseOperands = 3;
constexpr int kFewElementwiseVectors = 2;  // of a row, at most, where the columns are few

struct ElementwiseArgs {
  float* dst;
  const float* operands[kMaxElementwiseOperands];
  int64_t rows, columns;  // >= 1
};

struct ElementwiseConfig {
  struct Operand {
    bool broadcast = false;  // one element stands for all columns of a row
    int64_t row_bytes = 0;   // from row to row
  };
  jit::VectorUnit unit;
  std::vector<Operand> operands;
  int64_t dst_row_bytes = 0;
  int64_t columns = 0;  // of every row, where they are few; 0: the arguments tell
  PostOps post_ops;
};

class ElementwiseGenerator : public jit::Generator {
 public:
  using Function = void (*)(const ElementwiseArgs*);

 protected:
  ElementwiseGenerator(absl::string_view name, const ElementwiseConfig& config);
  const jit::VectorUnit& unit() const { return config_.unit; }
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // value = f(value, others): value holds operand 0, others the rest. `spare` may be overwritten.
  virtual void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                            const Xbyak::Xmm& spare) = 0;
  const Xbyak::Opmask spare_mask_ = k3;

 private:
  // A vector of dst in register `value`, `row` rows and `vector` vectors after the pointers.
  struct Slot {
    int value, row, vector;
    bool masked;
  };

  void Emit() override;
  void EmitFewColumns();
  void EmitManyColumns();
  void EmitSlots(const std::vector<Slot>& slots);
  void EmitPostOps(const std::vector<Slot>& slots);
  void EmitAdvance(int rows);
  void SetTail();
  void Hoist(int vectors, bool per_row);
  Xbyak::Xmm Hoisted(int operand, int vector) const;
  bool IsHoisted(int operand) const;
  Xbyak::Address At(const Xbyak::Reg64& base, int64_t row_bytes, const Slot& slot) const;
  int lanes() const { return config_.unit.lanes(); }
  int vector_bytes() const { return config_.unit.bytes(); }

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 dst_ = rsi, operands_[kMaxElementwiseOperands] = {rdx, r8, r9};
  const Xbyak::Reg64 rows_ = r10, left_ = r11, column_ = rcx, spare_ = rax;

  const ElementwiseConfig config_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one per post-op; null for a sum
  jit::TailMask tail_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_
