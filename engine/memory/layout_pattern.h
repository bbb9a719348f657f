// SPDX-License-Identifier: Apache-2.0
//
// A layout's pattern of letters, taken apart: "ABcd4b16a4b" is the outer order [0,1,2,3] with the
// inner blocks 4 on dimension 1, 16 on 0, 4 on 1. See format_tag.h for the meaning of the letters.
#ifndef ENGINE_MEMORY_LAYOUT_PATTERN_H_
#define ENGINE_MEMORY_LAYOUT_PATTERN_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/memory/inner_block.h"

namespace tilewire {

// Value type; thread-compatible.
struct PatternParts {
  static constexpr int64_t kMaxInnerSize = int64_t{1} << 16;  // elements of the whole inner block

  absl::InlinedVector<int, 6> order;  // dimensions, outermost first
  InnerBlocks blocks;                 // outermost first

  // kInvalidArgument  letters that are not a permutation of a, b, c, ...; an upper-case letter
  //                   without a block, or a block of a lower-case one; a block size below 2, or an
  //                   inner block over kMaxInnerSize
  static absl::StatusOr<PatternParts> Parse(absl::string_view pattern);
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_LAYOUT_PATTERN_H_
