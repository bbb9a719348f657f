// SPDX-License-Identifier: Apache-2.0
//
// Several tensors of one index space as nested loops with constant strides, in the order of the
// first tensor's memory. A blocked dimension is two loops, over blocks and inside a block; loops
// that continue each other in every tensor become one. A tensor whose size is 1 where the first
// one's is larger has the stride 0 there: it is broadcast. Pure; thread-safe.
#ifndef ENGINE_KERNELS_MOVES_STRIDED_LOOPS_H_
#define ENGINE_KERNELS_MOVES_STRIDED_LOOPS_H_

#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

struct StridedLoop {
  int64_t count = 1;
  absl::InlinedVector<int64_t, 4> strides;  // elements, one per tensor
};

// Outermost first, over the padded elements of tensors[0]; none for a single element. The tensors
// have layouts and one rank, and sizes that are the first one's or 1; offset0 is not counted.
// kUnimplemented  a tensor's elements are not at constant strides in that order, or it has no
//                 padded tail where the first one has one
absl::StatusOr<std::vector<StridedLoop>> LoopsOver(absl::Span<const MemoryDesc* const> tensors);

// Where turn number `position` of all of `loops`, of which the last turns fastest, is in `tensor`,
// in elements.
inline int64_t OffsetIn(absl::Span<const StridedLoop> loops, int64_t position, int tensor) {
  int64_t offset = 0;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    offset += position % loop->count * loop->strides[tensor];
    position /= loop->count;
  }
  return offset;
}

}  // namespace tilewire

#endif  // ENGINE_KERNELS_MOVES_STRIDED_LOOPS_H_
