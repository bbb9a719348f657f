// SPDX-License-Identifier: Apache-2.0
#include "client/text_width.h"

#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

TEST(TextWidth, CountsCells) {
  constexpr struct {
    const char* text;
    int cells;
  } kCases[] = {
      {"", 0},
      {"cats", 4},
      {"n\u00E9", 2},
      {"e\u0301", 1},               // an accent on its letter
      {"\u6A21\u578B", 4},          // Chinese
      {"\u30CD\uFF21", 4},          // Japanese, and a full-width letter
      {"\uD55C\uAE00", 4},          // Korean
      {"\u3131\u1100\u115F", 6},    // Korean letters
      {"\uFF71", 1},                // half-width
      {"\U0001F600\U00020000", 4},  // pictures, rare characters
      {"\u2713\u303F", 2},          // beside what is wide
      {"\xC3", 1},                  // cut off
      {"\xE6\xA8", 2},
      {"\xED\xA0\x80", 3},  // half of a pair
      {"\xC0\x80", 2},      // too long
      {"\xFF\x80", 2},
  };
  for (const auto& [text, cells] : kCases) EXPECT_EQ(TextWidth(text), cells) << text;
}

TEST(TextWidth, CutsBetweenCharacters) {
  constexpr struct {
    const char* text;
    int width;
    const char *end, *middle;
  } kCases[] = {
      {"resnet50_v1", 11, "resnet50_v1", "resnet50_v1"},
      {"resnet50_v1", 8, "resnet5~", "res~0_v1"},
      {"resnet50_v2", 8, "resnet5~", "res~0_v2"},
      {"resnet50_int8", 7, "resnet~", "res~nt8"},
      {"cats", 2, "c~", "~s"},
      {"cats", 1, "~", "~"},
      {"cats", 0, "", ""},
      {"n\u00E9n\u00E9n\u00E9", 4, "n\u00E9n~", "n~n\u00E9"},
      {"\u6A21\u578B\u4E00\u4E8C", 8, "\u6A21\u578B\u4E00\u4E8C", "\u6A21\u578B\u4E00\u4E8C"},
      {"\u6A21\u578B\u4E00\u4E8C", 7, "\u6A21\u578B\u4E00~", "\u6A21~\u4E8C"},
      {"\u6A21\u578B\u4E00\u4E8C", 6, "\u6A21\u578B~", "\u6A21~\u4E8C"},
      {"aae\u0301e\u0301bb", 5, "aae\u0301e\u0301~", "aa~bb"},
      {"aae\u0301b", 3, "aa~", "a~b"},
  };
  for (const auto& [text, width, end, middle] : kCases) {
    EXPECT_EQ(CutEnd(text, width), end) << text;
    EXPECT_EQ(CutMiddle(text, width), middle) << text;
    EXPECT_LE(TextWidth(CutMiddle(text, width)), width) << text;
  }
}

TEST(TextWidth, AnAccentDoesNotOutliveItsLetter) {
  EXPECT_EQ(Beginning("ae\u0301b", 2), "ae\u0301");
  EXPECT_EQ(Ending("ae\u0301b", 1), "b");
  EXPECT_EQ(Ending("ae\u0301b", 2), "e\u0301b");
  EXPECT_EQ(Ending("\u0301b", 1), "\u0301b") << "nothing is cut";
}

TEST(TextWidth, IsFilledUp) {
  EXPECT_EQ(PaddedAfter("\u6A21", 4), "\u6A21  ");
  EXPECT_EQ(PaddedBefore("\u6A21", 4), "  \u6A21");
  EXPECT_EQ(PaddedBefore("cats", 2), "cats");
}

}  // namespace
}  // namespace tilewire::client
