// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/layout_pattern.h"

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/memory/dims.h"

namespace tilewire {
namespace {

absl::Status Invalid(absl::string_view pattern, absl::string_view why) {
  return InvalidArgument("layout '", pattern.substr(0, 64), "': ", why);
}

// Reads "16b4a..." into `blocks`.
absl::Status ParseBlocks(absl::string_view pattern, absl::string_view text, int rank,
                         InnerBlocks* blocks) {
  int64_t inner_size = 1;
  while (!text.empty()) {
    int64_t size = 0;
    while (!text.empty() && absl::ascii_isdigit(text[0]) && size <= PatternParts::kMaxInnerSize) {
      size = size * 10 + (text[0] - '0');
      text.remove_prefix(1);
    }
    if (size < 2 || size > PatternParts::kMaxInnerSize / inner_size) {
      return Invalid(pattern, absl::StrCat("a block of ", size, " elements"));
    }
    if (text.empty() || text[0] < 'a' || text[0] >= 'a' + rank) {
      return Invalid(pattern, "a block of no dimension");
    }
    inner_size *= size;
    blocks->push_back({text[0] - 'a', size});
    text.remove_prefix(1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<PatternParts> PatternParts::Parse(absl::string_view pattern) {
  PatternParts layout;
  unsigned upper = 0, seen = 0;
  size_t at = 0;
  for (; at < pattern.size() && absl::ascii_isalpha(pattern[at]); ++at) {
    const int dim = absl::ascii_tolower(pattern[at]) - 'a';
    if (dim >= kMaxRank || (seen >> dim & 1)) return Invalid(pattern, "not a permutation");
    seen |= 1u << dim;
    if (absl::ascii_isupper(pattern[at])) upper |= 1u << dim;
    layout.order.push_back(dim);
  }
  const int rank = static_cast<int>(layout.order.size());
  if (rank == 0 || seen != (1u << rank) - 1) return Invalid(pattern, "not a permutation");
  ABSL_RETURN_IF_ERROR(ParseBlocks(pattern, pattern.substr(at), rank, &layout.blocks));
  unsigned blocked = 0;
  for (const InnerBlock& block : layout.blocks) blocked |= 1u << block.dim;
  if (blocked != upper) return Invalid(pattern, "upper-case letters and blocks do not agree");
  return layout;
}

}  // namespace tilewire
