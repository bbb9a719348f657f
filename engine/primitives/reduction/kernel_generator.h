// SPDX-License-Identifier: Apache-2.0
//
// Generates the reduction of a part of src over up to three loops, of which the innermost lies
// densely in memory.
//
//   over columns  the innermost loop is kept: dst[c] = f over both outer loops of src[c], for any
//                 number of columns, in two chains of results, of even and of odd steps
//   along a line  the innermost loop is reduced: dst[0] = f of everything; the lanes of four
//                 vectors hold partial results, which are combined at the end
//
// The order of operations depends on the loops alone.
#ifndef ENGINE_PRIMITIVES_REDUCTION_KERNEL_GENERATOR_H_
#define ENGINE_PRIMITIVES_REDUCTION_KERNEL_GENERATOR_H_

#include <cstdint>

#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"
#include "engine/primitives/reduction/reduction.h"

namespace tilewire::reduction {

struct KernelArgs {
  const float* src;
  float* dst;
  jit::LoopCount columns;  // over columns
};

struct KernelConfig {
  struct Loop {
    int64_t count = 1, stride_bytes = 0;
  };
  VectorUnit unit;
  ReductionAlgorithm algorithm = ReductionAlgorithm::kSum;
  float p = 2, eps = 0;
  int64_t reduced_count = 1;  // of the whole reduction, for the mean
  Loop outer, inner;          // reduced
  int64_t line = 0;           // elements of the innermost loop where it is reduced; 0: over columns
};

class KernelGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const KernelArgs*);
  KernelGenerator(absl::string_view name, const KernelConfig& config);

 private:
  static constexpr int kChains = 2, kUnroll = 4;
  // A lane adds at most so many elements before it is added to a total, so that rounding errors
  // grow with the number of blocks and not with that of elements.
  static constexpr int64_t kBlock = 512;

  void Emit() override;
  void EmitColumns();
  void EmitColumnVectors(int vectors, bool masked);
  void EmitLine();
  void EmitLinePart();
  // The results are vector 0 and on, of columns in kChains sets of kUnroll.
  void StartResults();
  void TakeTotals();
  void EmitSum(const Xbyak::Xmm& result, const Xbyak::Address& from, bool masked);
  void Combine(const Xbyak::Xmm& result, const Xbyak::Xmm& other);
  void RaiseToPower(const Xbyak::Xmm& x);
  void CombineLanes();
  void Finish(const Xbyak::Xmm& result);
  template <typename Body>
  void Loop(const Xbyak::Reg64& counter, int64_t count, Body body);
  // The same in blocks after each of which what the vectors hold moves to the totals, where that is
  // more than kBlock of `additions` each.
  template <typename Body>
  void LoopInBlocks(const Xbyak::Reg64& counter, const Xbyak::Reg64& blocks, int64_t count,
                    int64_t additions, Body body);
  void MoveToTotals();
  bool is_long() const { return config_.reduced_count > kBlock && SumsPlainly(); }
  bool SumsPlainly() const;

  int lanes() const { return config_.unit.lanes(); }
  int vector_bytes() const { return config_.unit.bytes(); }
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // Registers. Arguments arrive in rdi; vectors 0 to 7 are results.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, left_ = rcx;
  const Xbyak::Reg64 outer_left_ = r8, inner_left_ = r9, outer_at_ = r10, inner_at_ = rbx;
  const Xbyak::Reg64 line_left_ = rbp;
  const Xbyak::Reg64 outer_blocks_ = r12, inner_blocks_ = r13, line_blocks_ = r14;
  const Xbyak::Opmask ordered_ = k3;

  const KernelConfig config_;
  jit::VectorMath math_;
  jit::TailMask tail_;
  const Xbyak::Xmm x_ = Vector(8), spare_vector_ = Vector(9);
  // Scratch of powers, or of extrema; the first kUnroll are the totals of long sums, which have
  // neither.
  const jit::VectorMath::Scratch5 scratch_ = {Vector(10), Vector(11), Vector(12), Vector(13),
                                              Vector(14)};
};

}  // namespace tilewire::reduction

#endif  // ENGINE_PRIMITIVES_REDUCTION_KERNEL_GENERATOR_H_
