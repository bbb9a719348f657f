// SPDX-License-Identifier: Apache-2.0
//
// Goes through the name once; where it fits no further, the last * takes one character more.
// Earlier ones need not: the text between two was found at its first place.
#include "engine/training/name_pattern.h"

#include <cstddef>

namespace tilewire::training {

bool MatchesPattern(absl::string_view name, absl::string_view pattern) {
  constexpr size_t kNone = absl::string_view::npos;
  size_t at = 0, place = 0, star = kNone, taken = 0;  // `star` took the name up to `taken`
  while (at < name.size()) {
    if (place < pattern.size() && pattern[place] == '*') {
      star = place++;
      taken = at;
    } else if (place < pattern.size() && pattern[place] == name[at]) {
      ++place, ++at;
    } else if (star != kNone) {
      place = star + 1;
      at = ++taken;
    } else {
      return false;
    }
  }
  while (place < pattern.size() && pattern[place] == '*') ++place;
  return place == pattern.size();
}

}  // namespace tilewire::training
