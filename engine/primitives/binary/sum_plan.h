// SPDX-License-Identifier: Apache-2.0
//
// How the gradient of src1 is summed with a SumGenerator's function, in pieces of work that threads
// share. Where there are few results of many elements, pieces are parts of sums, cut along the
// outermost loop, which are added in their order. The cuts depend on the descriptor alone.
//
// Plans are immutable and thread-safe.
#ifndef ENGINE_PRIMITIVES_BINARY_SUM_PLAN_H_
#define ENGINE_PRIMITIVES_BINARY_SUM_PLAN_H_

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/moves/strided_loops.h"
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/binary/sum_generator.h"
#include "engine/threading/arena.h"

namespace tilewire::binary {

class SumPlan {
 public:
  //   kUnimplemented  as LoopsOver(); too many loops are summed; many elements share memory
  static absl::StatusOr<SumPlan> Create(const BinaryDesc& desc);

  SumConfig Config(const jit::VectorUnit& unit) const;
  bool writes_first() const { return writes_first_; }  // Run() writes diff_src0, too
  int64_t scratchpad_bytes() const;

  // The first elements: x and y of src0 and src1, dx of diff_src0, null where there is none, and
  // `to` of diff_src1.
  struct Tensors {
    const float *dy, *x, *y;
    float *dx, *to;
  };
  void Run(SumGenerator::Function function, const Tensors& tensors, std::byte* scratchpad,
           const threading::Team& team) const;

 private:
  explicit SumPlan(const BinaryDesc& desc)
      : algorithm_(desc.algorithm),
        writes_first_(CanWriteFirst(desc.algorithm) && !desc.diff_src0.IsZero()) {}
  void SortLoops(std::vector<StridedLoop> loops);
  void CutWork();
  // The turns of the outermost loop that is summed.
  const StridedLoop& Outermost() const { return summed_.empty() ? inner_ : summed_[0]; }
  int64_t OffsetOf(int64_t position, int64_t result, int tensor) const;
  int64_t results() const { return positions_ * results_.count; }
  bool ReadsSecond() const { return SumReadsSecond(algorithm_, writes_first_); }
  bool IsDense() const;
  void RunItem(SumGenerator::Function function, const Tensors& tensors, double* parts,
               int64_t item) const;
  void AddParts(const double* parts, float* to) const;

  BinaryAlgorithm algorithm_;
  bool writes_first_;
  bool of_runs_ = false;
  bool is_empty_ = false;          // nothing is summed
  std::vector<StridedLoop> kept_;  // around `results_`
  StridedLoop results_, inner_;    // of columns they are the same
  std::vector<StridedLoop> summed_;
  int64_t positions_ = 1;  // of all of `kept_`
  int64_t at_a_call_ = 1, items_at_once_ = 1, parts_ = 1;
};

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_SUM_PLAN_H_
