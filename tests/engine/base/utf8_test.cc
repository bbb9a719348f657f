// SPDX-License-Identifier: Apache-2.0
#include "engine/base/utf8.h"

#include <string>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

TEST(Utf8Test, CharactersOfOneToFourBytes) {
  for (const char* text : {"", "stem/Conv", "caf\u00e9", "\u4e2d\u6587", "\U0001F600",
                           "\u07ff\u0800", "\ud7ff\ue000\uffff\U00010000\U0010ffff"}) {
    EXPECT_TRUE(IsUtf8(text)) << text;
    EXPECT_EQ(Utf8Text(text), text);
  }
}

TEST(Utf8Test, BytesThatAreNoCharacterBecomeQuestionMarks) {
  const std::pair<const char*, const char*> kCases[] = {
      {"caf\xe9", "caf?"},              // Latin-1
      {"\x80x", "?x"},                  // in the middle of a character
      {"a\xc3", "a?"},                  // cut off
      {"\xe4\xb8", "??"},               // cut off
      {"\xc3(", "?("},                  // its second byte is missing
      {"\xc0\xaf", "??"},               // longer than need be
      {"\xe0\x9f\xbf", "???"},          // the same
      {"\xf0\x8f\xbf\xbf", "????"},     // the same
      {"\xed\xa0\x80", "???"},          // half of a pair
      {"\xf4\x90\x80\x80", "????"},     // beyond the last character
      {"\xf5\x80\x80\x80", "????"},     // the same
      {"\xff\xfe\xc3\xa9", "??\u00e9"}  // and a character
  };
  for (const auto& [text, valid] : kCases) {
    EXPECT_FALSE(IsUtf8(text)) << valid;
    EXPECT_EQ(Utf8Text(text), valid);
  }
}

}  // namespace
}  // namespace tilewire::testing
