// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/format_tag.h"

#include <array>

#include "absl/strings/ascii.h"
#include "engine/base/status_macros.h"

namespace tilewire {
namespace {

constexpr int kFirst = static_cast<int>(FormatTag::kAny) + 1;

// The letters of dimensions in their order, of which a name has some.
constexpr absl::string_view DimensionsOf(absl::string_view name) {
  const auto has = [name](char wanted) {
    for (const char letter : name) {
      if (letter == wanted) return true;
    }
    return false;
  };
  if (has('a') || has('b')) return "abcdef";
  if (has('l')) return "ldnigoc";
  return has('o') ? "goidhw" : "tncdhwx";
}

constexpr char Lower(char letter) { return static_cast<char>(letter | ' '); }

// "aBcd16b" of "nChw16c": the dimensions before the first digit become a, b, c, ...
struct TagPattern {
  constexpr explicit TagPattern(absl::string_view of) : name(of) {
    for (const char from : name) text[size++] = from < 'A' ? from : LetterOf(from);
  }
  constexpr char LetterOf(char from) const {
    char to = from < 'a' ? 'A' : 'a';
    for (const char dimension : DimensionsOf(name)) {
      if (dimension == Lower(from)) break;
      for (size_t i = 0; i < name.size() && name[i] >= 'A'; ++i)
        to += Lower(name[i]) == dimension ? 1 : 0;
    }
    return to;
  }
  absl::string_view name;
  char text[16] = {};
  size_t size = 0;
};

constexpr TagPattern kPatterns[] = {
#define TILEWIRE_FORMAT_TAG(name) TagPattern(#name),
#include "engine/memory/format_tags.inc"
};
constexpr auto kTagRows = [] {
  std::array<FormatTagRow, std::size(kPatterns)> rows = {};
  int tag = kFirst;
  for (size_t i = 0; i < rows.size(); ++i, ++tag)
    rows[i] = {
        static_cast<FormatTag>(tag), kPatterns[i].name, {kPatterns[i].text, kPatterns[i].size}};
  return rows;
}();

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
