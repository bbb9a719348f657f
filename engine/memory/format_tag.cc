// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/format_tag.h"

#include "absl/strings/ascii.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr FormatTagRow kTagRows[] = {
#define TILEWIRE_FORMAT_TAG(name, pattern) {FormatTag::k_##name, #name, pattern},
#include "engine/memory/format_tags.inc"
#undef TILEWIRE_FORMAT_TAG
};

constexpr int kFirst = static_cast<int>(FormatTag::kAny) + 1;

const FormatTagRow* Find(FormatTag tag) {
  const int index = static_cast<int>(tag) - kFirst;
  return index >= 0 && index < static_cast<int>(std::size(kTagRows)) ? &kTagRows[index] : nullptr;
}

}  // namespace

absl::Span<const FormatTagRow> FormatTags() { return kTagRows; }

absl::string_view FormatTagName(FormatTag tag) {
  if (tag == FormatTag::kAny) return "any";
  const FormatTagRow* row = Find(tag);
  return row == nullptr ? "undef" : row->name;
}

absl::string_view FormatTagPattern(FormatTag tag) {
  const FormatTagRow* row = Find(tag);
  return row == nullptr ? "" : row->pattern;
}

int FormatTagRank(FormatTag tag) {
  // The letters of the blocks follow digits; those of the dimensions come before the first digit.
  int rank = 0;
  for (char c : FormatTagPattern(tag)) {
    if (absl::ascii_isdigit(c)) break;
    ++rank;
  }
  return rank;
}

absl::StatusOr<FormatTag> ParseFormatTag(absl::string_view name) {
  if (name == "any") return FormatTag::kAny;
  for (const FormatTagRow& row : kTagRows) {
    if (row.name == name) return row.tag;
  }
  return InvalidArgument("no format tag is named '", name.substr(0, 64), "'");
}

}  // namespace tilewire
