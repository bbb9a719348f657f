// SPDX-License-Identifier: Apache-2.0
//
// Descriptors in common layouts, and comparisons of layouts, for lowering and execution. Pure
// functions; thread-safe.
#ifndef ENGINE_RUNTIME_LAYOUTS_H_
#define ENGINE_RUNTIME_LAYOUTS_H_

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/memory_desc.h"

namespace tilewire::runtime {

// The plain layout in which clients hold a tensor of logical dims [N, C, spatial...]: row-major in
// that order, or with the channels last. Below rank 3 both are the same.
absl::StatusOr<MemoryDesc> PlainDesc(const Dims& dims, DataType type, bool channels_last);

// Without gaps, with the dimensions in `order`: order[0] is the outermost in memory.
absl::StatusOr<MemoryDesc> NestedDesc(const Dims& dims, DataType type, absl::Span<const int> order);

// Whether the elements are in logical row-major order, without gaps or padding. This includes
// blocked layouts of tensors for which both orders are the same, such as [N,C,1,1] in nChw16c where
// 16 divides C.
bool IsRowMajorInMemory(const MemoryDesc& desc);

// Whether the strides are equal, for two layouts of the same rank and blocks. The strides of
// dimensions of a single block do not count, because nothing uses them.
bool SameStrides(const MemoryDesc& a, const MemoryDesc& b);

// Whether every element, and every element of padding, is at the same offset in both, so that no
// reorder is needed between them.
bool SameMemory(const MemoryDesc& a, const MemoryDesc& b);

// A tensor of `dims` without gaps, whose dimensions are nested and blocked as those of `desc`; in
// row-major order where the rank differs.
absl::StatusOr<MemoryDesc> LayoutLike(const MemoryDesc& desc, const Dims& dims);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_LAYOUTS_H_
