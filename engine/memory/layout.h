// SPDX-License-Identifier: Apache-2.0
//
// The layouts that replace `any`, and what implementations require of a layout.
#ifndef ENGINE_MEMORY_LAYOUT_H_
#define ENGINE_MEMORY_LAYOUT_H_

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/memory_desc.h"

namespace tilewire {

// The pattern of letters (format_tag.h) of the dense layout whose dimensions are nested and blocked
// as those of `desc`.
std::string LayoutPattern(const MemoryDesc& desc);

// "abcd" for rank 4: row-major.
absl::string_view PlainPattern(int rank);

// `desc` itself, or, where it is `any`, its dims and type in the layout of `like` (of the same
// rank): `like` itself where it has these and can be written, otherwise dense.
absl::StatusOr<MemoryDesc> OrLayoutOf(const MemoryDesc& desc, const MemoryDesc& like);

// `desc` itself, or, where it is `any`, its dims and type in the layout of `pattern`.
absl::StatusOr<MemoryDesc> OrPattern(const MemoryDesc& desc, absl::string_view pattern);
// As OrPattern() with a row-major pattern, for implementations that read an element at any index.
// kUnimplemented for transformed weights, which have no such elements.
absl::StatusOr<MemoryDesc> OrPlain(const MemoryDesc& desc);

// Row-major f32 elements of these dims, which have a size.
MemoryDesc RowMajorF32(const Dims& dims);

// kUnimplemented  not dense in row-major order from the start of the buffer
absl::Status RequireRowMajor(const MemoryDesc& desc);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_LAYOUT_H_
