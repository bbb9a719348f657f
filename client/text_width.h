// SPDX-License-Identifier: Apache-2.0
//
// The width of text in cells of a terminal, and text that is cut or filled up to a width.
// Characters of East Asia and pictures take two cells, accents that stand on another character
// none; a byte that is not UTF-8 takes one. The same in every locale. Pure functions.
#ifndef CLIENT_TEXT_WIDTH_H_
#define CLIENT_TEXT_WIDTH_H_

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace tilewire::client {

// A character of UTF-8, or a single byte that does not belong to one.
struct Character {
  char32_t code = 0;
  size_t bytes = 0;
};
// The first one of `text`, which is not empty.
Character FirstCharacter(absl::string_view text);

int TextWidth(absl::string_view text);

// The longest beginning, and the longest end, of at most `width` cells.
absl::string_view Beginning(absl::string_view text, int width);
absl::string_view Ending(absl::string_view text, int width);

// At most `width` cells, with a '~' in the place of what was cut: at the end, or in the middle,
// where names that begin alike and end alike differ least.
std::string CutEnd(absl::string_view text, int width);
std::string CutMiddle(absl::string_view text, int width);

// At least `width` cells, with blanks after or before the text.
std::string PaddedAfter(absl::string_view text, int width);
std::string PaddedBefore(absl::string_view text, int width);

}  // namespace tilewire::client

#endif  // CLIENT_TEXT_WIDTH_H_
