// SPDX-License-Identifier: Apache-2.0
//
// Functions of the elements of up to three tensors at the same index, with post-ops, as generated
// code over rows and columns of memory: dst = postops(f(operand 0, operand 1, ...)). Operands may
// be broadcast along either. What primitives derive from: a generator that emits f, and a primitive
// that calls ElementwisePlan::Run.
//
// The two innermost of the tensors' strided loops are a kernel's columns and rows. Few columns (a
// channel block) are unrolled and what does not change from row to row stays in registers.
#ifndef ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_
#define ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_

#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/cpu/isa.h"
#include "engine/jit/eltwise_emitter.h"
#include "engine/jit/generator.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/strided_loops.h"
#include "engine/threading/arena.h"

namespace tilewire {

constexpr int kMaxRowOperands = 3;

struct RowsArgs {
  float* dst;
  const float* operands[kMaxRowOperands];
  int64_t rows, columns;  // >= 1
};

struct RowsConfig {
  struct Operand {
    bool broadcast = false;  // one element for all columns of a row
    int64_t row_bytes = 0;   // from row to row
  };
  cpu::Isa isa = cpu::Isa::kAvx512;
  std::vector<Operand> operands;
  int64_t dst_row_bytes = 0;
  int64_t columns = 0;  // of every row, where they are few; 0: as the arguments say
  PostOps post_ops;
};

class RowsGenerator : public jit::Generator {
 public:
  using Function = void (*)(const RowsArgs*);

 protected:
  RowsGenerator(absl::string_view name, const RowsConfig& config);
  Xbyak::Xmm Vector(int index) const;
  bool is_avx512() const { return config_.isa >= cpu::Isa::kAvx512; }

  // value = f(value, others): value holds operand 0, others the rest. `spare` may be overwritten.
  virtual void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                            const Xbyak::Xmm& spare) = 0;
  const Xbyak::Opmask spare_mask_ = k3;

 private:
  // A vector of dst: at `row` rows and `column` bytes from the pointers, in register `value`.
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
  void LoadMask();
  void Hoist(int vectors, bool per_row);
  Xbyak::Xmm Hoisted(int operand, int vector) const;
  bool IsHoisted(int operand) const;
  Xbyak::Address At(const Xbyak::Reg64& base, int64_t row_bytes, const Slot& slot) const;
  void Load(const Xbyak::Xmm& to, const Xbyak::Address& from, bool masked);
  void Store(const Xbyak::Address& to, const Xbyak::Xmm& from, bool masked);
  void BroadcastConstant(const Xbyak::Xmm& to, float value);
  int lanes() const { return is_avx512() ? 16 : 8; }
  int vector_bytes() const { return lanes() * 4; }

  // Registers. Arguments arrive in rdi.
  const Xbyak::Reg64 dst_ = rsi, operands_[kMaxRowOperands] = {rdx, r8, r9};
  const Xbyak::Reg64 rows_ = r10, left_ = r11, column_ = rcx, spare_ = rax;
  const Xbyak::Opmask mask_ = k2;

  const RowsConfig config_;
  std::vector<std::unique_ptr<jit::EltwiseEmitter>> emitters_;  // one a post-op; null for a sum
  Xbyak::Label lane_table_;
};

// How a primitive walks over its tensors. Immutable.
class ElementwisePlan {
 public:
  // tensors: dst, then the operands. kUnimplemented as LoopsOver, and where dst's elements do not
  // follow each other.
  static absl::StatusOr<ElementwisePlan> Create(absl::Span<const MemoryDesc* const> tensors,
                                                cpu::Isa isa);

  RowsConfig Config(const PostOps& post_ops) const;
  // The pointers are to the elements at index 0.
  void Run(RowsGenerator::Function function, float* dst, absl::Span<const float* const> operands,
           const threading::Team& team) const;

 private:
  cpu::Isa isa_ = cpu::Isa::kAvx512;
  std::vector<StridedLoop> outer_;
  StridedLoop rows_, columns_;
  int64_t outer_count_ = 1, rows_per_task_ = 1, columns_per_task_ = 1;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTWISE_KERNEL_H_
