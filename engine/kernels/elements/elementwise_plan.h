// SPDX-License-Identifier: Apache-2.0
//
// How a primitive walks over its tensors with an ElementwiseGenerator's function
// (elementwise_kernel.h), in tasks that threads share. Plans are immutable and thread-safe.
#ifndef ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_PLAN_H_
#define ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_PLAN_H_

#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/moves/strided_loops.h"
#include "engine/memory/memory_desc.h"
#include "engine/threading/arena.h"

namespace tilewire {

class ElementwisePlan {
 public:
  // tensors: dst, then the operands, of types that ElementLanes knows.
  //   kUnimplemented  as LoopsOver(); elements of a tensor do not follow each other; a step between
  //                   rows does not fit 31 bits
  static absl::StatusOr<ElementwisePlan> Create(absl::Span<const MemoryDesc* const> tensors,
                                                const jit::VectorUnit& unit);

  ElementwiseConfig Config(const PostOps& post_ops, int least_lane_bytes = 4) const;
  // Pointers are to the elements at index 0.
  void Run(ElementwiseGenerator::Function function, void* dst,
           absl::Span<const void* const> operands, const threading::Team& team) const;

 private:
  explicit ElementwisePlan(const jit::VectorUnit& unit) : unit_(unit) {}

  jit::VectorUnit unit_;
  std::vector<DataType> types_;  // of the tensors
  std::vector<StridedLoop> outer_;
  StridedLoop rows_, columns_;
  int64_t outer_count_ = 1, rows_per_task_ = 1, columns_per_task_ = 1;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_ELEMENTWISE_PLAN_H_
