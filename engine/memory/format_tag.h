// SPDX-License-Identifier: Apache-2.0
//
// Names of common layouts. A tag stands for a pattern of letters: 'a' is dimension 0, 'b' dimension
// 1, ...; lower case is a plain dimension, upper case one that is also blocked, and the blocks
// follow with their sizes, outermost first: nChw16c = "aBcd16b", OIhw4i16o4i = "ABcd4b16a4b".
// Source: MKL-DNN 1.0.4's mkldnn_format_tag_t (tests/engine/rows.txt T01 to T06).
#ifndef ENGINE_MEMORY_FORMAT_TAG_H_
#define ENGINE_MEMORY_FORMAT_TAG_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace tilewire {

enum class FormatTag : uint16_t {
  kUndef = 0,
  kAny,
#define TILEWIRE_FORMAT_TAG(name) k_##name,
#include "engine/memory/format_tags.inc"
};

struct FormatTagRow {
  FormatTag tag;
  absl::string_view name;     // "nChw16c"
  absl::string_view pattern;  // "aBcd16b"
};

// Every tag but kUndef and kAny, in the order of the enumeration.
absl::Span<const FormatTagRow> FormatTags();

absl::string_view FormatTagName(FormatTag tag);     // "nChw16c"; "undef", "any"
absl::string_view FormatTagPattern(FormatTag tag);  // "aBcd16b"; empty for undef and any
int FormatTagRank(FormatTag tag);                   // 4 for nChw16c

// Takes any name of FormatTags(), or "any".
//   kInvalidArgument  no tag has this name
absl::StatusOr<FormatTag> ParseFormatTag(absl::string_view name);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_FORMAT_TAG_H_
