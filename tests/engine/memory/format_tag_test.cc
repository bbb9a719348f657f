// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/format_tag.h"

#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "engine/memory/data_type.h"
#include "engine/memory/memory_desc.h"
#include "tests/support/status_matchers.h"

namespace tilewire::testing {
namespace {

// The rows of the specification, as they stand in it; "*" is each of w, hw, dhw.
constexpr absl::string_view kTags[] = {
    // T01
    "a ab abc abcd abcde abcdef abdec acb acbde acdb acdeb ba bac bacd bca bcda bcdea cba cdba "
    "cdeba decab",
    // T02
    "x nc cn ncw nwc nchw nhwc chwn ncdhw ndhwc tnc ntc ldnc ldigo ldgoi ldgo",
    // T03, and blocks of 32, the lines of bf16 that oneDNN has since
    "nC*4c nC*8c nC*16c nC*32c NC*16n16c NChw32n32c",
    // T04
    "oi io oiw owi wio iwo oihw hwio ohwi ihwo iohw oidhw dhwio odhwi idhwo goiw goihw hwigo giohw "
    "goidhw",
    // T05
    "OI*16i16o OI*16o16i IO*16o16i IO*16i16o Oi*16o OIw4i16o4i OIhw4i16o4i OI*4i4o Oi*4o "
    "OI*8i16o2i OI*8i8o",
    "OI*8o16i2o IO*8o16i2o OI*8o8i O*i16o O*i4o O*i8o Ohwi32o OIhw4o8i8o4i OIhw2o8i8o2i",
    // T06
    "gOI*16i16o gOI*16o16i gIO*16o16i gIO*16i16o gOi*16o gOIw4i16o4i gOIhw4i16o4i gOI*4i4o gOi*4o "
    "gOI*8i16o2i",
    "gOI*8i8o gOI*8o16i2o gIO*8o16i2o gOI*8o8i gO*i16o gO*i4o gO*i8o Goiw16g Goihw16g Goidhw16g "
    "Goihw8g",
    "gOIhw2i8o4i gOIhw4o4i gOhwi32o gOIhw4o8i8o4i gOIhw2o8i8o2i",
};

std::vector<std::string> SpecifiedTags() {
  std::vector<std::string> tags;
  for (absl::string_view row : kTags) {
    for (absl::string_view tag : absl::StrSplit(row, ' ')) {
      for (absl::string_view spatial : {"w", "hw", "dhw"}) {
        tags.push_back(absl::StrReplaceAll(tag, {{"*", spatial}}));
        if (tag.find('*') == absl::string_view::npos) break;
      }
    }
  }
  return tags;
}

TEST(FormatTagTest, EverySpecifiedTagParsesAndMakesADescriptor) {
  for (const std::string& name : SpecifiedTags()) {
    SCOPED_TRACE(name);
    const absl::StatusOr<FormatTag> tag = ParseFormatTag(name);
    ASSERT_THAT(tag, IsOk());
    EXPECT_EQ(FormatTagName(*tag), name);
    // More than one block of each dimension: otherwise any order of the outer blocks fits.
    const Dims dims(FormatTagRank(*tag), 33);
    ASSERT_OK_AND_ASSIGN(const MemoryDesc desc, MemoryDesc::Create(dims, DataType::kF32, *tag));
    EXPECT_TRUE(desc.Matches(*tag));
    EXPECT_TRUE(desc.IsDense());
    // An alias may be printed, but it stands for the same layout.
    EXPECT_EQ(FormatTagPattern(desc.Tag()), FormatTagPattern(*tag));
  }
}

TEST(FormatTagTest, TheTableHasNoOtherTagAndNoNameTwice) {
  const std::vector<std::string> tags = SpecifiedTags();
  const std::set<std::string> specified(tags.begin(), tags.end());
  std::set<std::string> listed;
  for (const FormatTagRow& row : FormatTags()) {
    EXPECT_TRUE(listed.insert(std::string(row.name)).second) << row.name;
    EXPECT_EQ(FormatTagName(row.tag), row.name);
  }
  EXPECT_EQ(listed, specified);
}

struct PatternCase {
  const char* name;
  const char* pattern;
};

// One of each family, with the patterns of MKL-DNN 1.0.
constexpr PatternCase kPatterns[] = {
    {"nhwc", "acdb"},
    {"chwn", "bcda"},
    {"nChw16c", "aBcd16b"},
    {"NCw16n16c", "ABc16a16b"},
    {"NChw32n32c", "ABcd32a32b"},
    {"hwio", "cdba"},
    {"hwigo", "decab"},
    {"giohw", "acbde"},
    {"IOhw16o16i", "BAcd16a16b"},
    {"OIhw16i16o", "ABcd16b16a"},
    {"OIhw4i16o4i", "ABcd4b16a4b"},
    {"Ohwi16o", "Acdb16a"},
    {"Owi8o", "Acb8a"},
    {"gOIdhw16i16o", "aBCdef16c16b"},
    {"Goihw16g", "Abcde16a"},
    {"gOhwi32o", "aBdec32b"},
    {"ldgoi", "abdec"},
    {"ntc", "bac"},
    {"OIhw2o8i8o2i", "ABcd2a8b8a2b"},
    {"gIOw16i16o", "aCBd16c16b"},
};

TEST(FormatTagTest, PatternsAreThoseOfMklDnn) {
  for (const PatternCase& expected : kPatterns) {
    ASSERT_OK_AND_ASSIGN(const FormatTag tag, ParseFormatTag(expected.name));
    EXPECT_EQ(FormatTagPattern(tag), expected.pattern) << expected.name;
  }
}

TEST(FormatTagTest, UnknownNamesAreRefused) {
  for (const char* name : {"", "undef", "nchW", "NCHW", "nChw16", "abcdefg"}) {
    EXPECT_THAT(ParseFormatTag(name),
                StatusIs(absl::StatusCode::kInvalidArgument, "no format tag"));
  }
  EXPECT_THAT(ParseFormatTag(std::string(1 << 20, 'a')),
              StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_LT(ParseFormatTag(std::string(1 << 20, 'a')).status().message().size(), 1024);
  EXPECT_EQ(*ParseFormatTag("any"), FormatTag::kAny);
  EXPECT_EQ(FormatTagName(FormatTag::kUndef), "undef");
  EXPECT_EQ(FormatTagRank(FormatTag::kAny), 0);
}

TEST(DataTypeTest, NamesNumbersAndSizes) {
  const struct {
    const char* name;
    int number;
    int64_t size;
  } kTypes[] = {{"undef", 0, 0}, {"f16", 1, 2},  {"bf16", 2, 2}, {"f32", 3, 4},  {"s32", 4, 4},
                {"s8", 5, 1},    {"u8", 6, 1},   {"f64", 7, 8},  {"bool", 8, 1}, {"s16", 9, 2},
                {"u16", 10, 2},  {"u32", 11, 4}, {"s64", 12, 8}, {"u64", 13, 8}};
  for (const auto& expected : kTypes) {
    const auto type = static_cast<DataType>(expected.number);
    EXPECT_EQ(DataTypeName(type), expected.name);
    EXPECT_EQ(SizeOf(type), expected.size);
  }
  EXPECT_EQ(SizeOf(static_cast<DataType>(77)), 0);
}

}  // namespace
}  // namespace tilewire::testing
