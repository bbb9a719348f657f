// SPDX-License-Identifier: Apache-2.0
//
// Questions about layouts that lowering and execution ask. Pure functions; thread-safe.
#ifndef ENGINE_RUNTIME_LAYOUTS_H_
#define ENGINE_RUNTIME_LAYOUTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/memory_desc.h"

namespace tilewire::runtime {

// The plain layout in which clients hold a tensor of logical dims [N, C, spatial...]: row-major in
// that order, or with the channels last. Below rank 3 both are the same.
absl::StatusOr<MemoryDesc> PlainDesc(const Dims& dims, DataType type, bool channels_last);

// Dense, the dimension order[0] the outermost in memory and the last of `order` the innermost.
absl::StatusOr<MemoryDesc> NestedDesc(const Dims& dims, DataType type, absl::Span<const int> order);

// The elements follow each other in logical row-major order, without gaps or padding; blocked
// layouts of tensors whose blocked sizes leave no choice count too ([N,C,1,1] in nChw16c where 16
// divides C).
bool IsRowMajorInMemory(const MemoryDesc& desc);

// As far as strides are used, which those of dimensions of one block are not. The same rank and
// blocks.
bool SameStrides(const MemoryDesc& a, const MemoryDesc& b);

// Every element (and every padding) of both lives at the same place, so that no reorder is needed
// between them.
bool SameMemory(const MemoryDesc& a, const MemoryDesc& b);

// The dense layout whose dimensions are nested and blocked as those of `desc`, for a tensor of
// other sizes; row-major where the rank differs.
absl::StatusOr<MemoryDesc> LayoutLike(const MemoryDesc& desc, const Dims& dims);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_LAYOUTS_H_
