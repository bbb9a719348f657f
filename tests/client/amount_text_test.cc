// SPDX-License-Identifier: Apache-2.0
#include "client/amount_text.h"

#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

TEST(AmountText, BytesHaveThreeDigits) {
  constexpr struct {
    int64_t bytes;
    const char* text;
  } kCases[] = {{0, "0 B"},
                {999, "999 B"},
                {1000, "1.00 kB"},
                {41'512, "41.5 kB"},
                {999'499, "999 kB"},
                {999'500, "1.00 MB"},
                {8'257'536, "8.26 MB"},
                {1'200'000'000, "1.20 GB"}};
  for (const auto& [bytes, text] : kCases) EXPECT_EQ(BytesText(bytes), text);
}

TEST(AmountText, OneIsNotMany) {
  EXPECT_EQ(CountText(0, "answer"), "0 answers");
  EXPECT_EQ(CountText(1, "answer"), "1 answer");
  EXPECT_EQ(CountText(2, "answer"), "2 answers");
}

TEST(AmountText, CyclesAreInThousands) {
  EXPECT_EQ(CyclesText(0), "0 cycles");
  EXPECT_EQ(CyclesText(999.4), "999 cycles");
  EXPECT_EQ(CyclesText(1000), "1,000 cycles");
  EXPECT_EQ(CyclesText(123'456'789), "123,456,789 cycles");
}

TEST(AmountText, RatesAreRounded) {
  constexpr struct {
    double rate;
    const char* text;
  } kCases[] = {{0, "0"},           {0.001, "0.001"}, {0.35, "0.35"},    {48.3, "48.3"},
                {76.4517, "76.45"}, {999.96, "1000"}, {1234.56, "1235"}, {1e6, "1000000"}};
  for (const auto& [rate, text] : kCases) EXPECT_EQ(RateText(rate), text);
}

TEST(AmountText, ATerminalObeysNoTextOfOthers) {
  constexpr struct {
    const char *text, *shown;
  } kCases[] = {{"cats", "cats"},
                {"a\x1b[2Jb\nc\td\x7f", "a?[2Jb?c?d?"},
                {"n\xC3\xA9", "n\xC3\xA9"},
                {"\xC2\x9B"
                 "2J",
                 "?2J"},
                {"\xC2\xA0", "\xC2\xA0"},
                {"a\u202Eb\u202Ac\u2066d\u2069", "a?b?c?d?"},
                {"a\u200Eb\u200Fc\u061Cd", "a?b?c?d"},
                {"a\u2028b\u200Bc\uFEFFd", "a?b?c?d"},
                {"\u6A21\u578B \U0001F600", "\u6A21\u578B \U0001F600"},
                {"\xE0\x80\x9B[2J",
                 "\xE0?"
                 "?[2J"},
                {"cut off\xC2", "cut off\xC2"}};
  for (const auto& [text, shown] : kCases) EXPECT_EQ(ShownText(text), shown);
}

}  // namespace
}  // namespace tilewire::client
