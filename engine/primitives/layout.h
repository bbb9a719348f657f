// SPDX-License-Identifier: Apache-2.0
//
// The layouts that replace `any`, and what implementations require of a layout.
#ifndef ENGINE_PRIMITIVES_LAYOUT_H_
#define ENGINE_PRIMITIVES_LAYOUT_H_

#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
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

// What an implementation resolves a descriptor to (see implementation.h) when `dst`, one of the
// above, is all that may have been `any`; and when each of src, weights, bias and dst may, and
// becomes row-major.
template <typename Desc>
absl::StatusOr<Desc> WithDst(Desc desc, absl::StatusOr<MemoryDesc> dst) {
  ABSL_ASSIGN_OR_RETURN(desc.dst, std::move(dst));
  return desc;
}
template <typename Desc>
absl::StatusOr<Desc> WithPlainTensors(Desc desc) {
  for (MemoryDesc* tensor : {&desc.src, &desc.weights, &desc.bias, &desc.dst}) {
    ABSL_ASSIGN_OR_RETURN(*tensor, OrPlain(*tensor));
  }
  return desc;
}

// kUnimplemented  not dense in row-major order from the start of the buffer
absl::Status RequireRowMajor(const MemoryDesc& desc);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_LAYOUT_H_
