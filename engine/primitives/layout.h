// SPDX-License-Identifier: Apache-2.0
//
// What primitives ask of layouts: the one to put in the place of `any`, walks over logical indices,
// the zero tail.
#ifndef ENGINE_PRIMITIVES_LAYOUT_H_
#define ENGINE_PRIMITIVES_LAYOUT_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

// The pattern of letters (format_tag.h) of the dense layout whose dimensions are nested and blocked
// as those of `desc`.
std::string LayoutPattern(const MemoryDesc& desc);

// `desc` itself, or, where it is `any`, its dims and type in the layout of `like` (of the same
// rank).
absl::StatusOr<MemoryDesc> OrLayoutOf(const MemoryDesc& desc, const MemoryDesc& like);

// body(index) for every index below `dims` whose first coordinate is `first`, in row-major order;
// rank >= 1.
void ForEachIndex(const Dims& dims, int64_t first,
                  absl::FunctionRef<void(absl::Span<const int64_t>)> body);

// Writes zeros to every element of the padded tensor that is not one of the tensor.
void ZeroPaddedTail(const MemoryDesc& desc, void* bytes);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_LAYOUT_H_
