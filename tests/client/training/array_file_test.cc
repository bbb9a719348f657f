// SPDX-License-Identifier: Apache-2.0
#include "client/training/array_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using tilewire::testing::StatusIs;

std::string NpyFile(absl::string_view type, absl::string_view shape, absl::string_view bytes) {
  const std::string header =
      absl::StrCat("{'descr': '", type, "', 'fortran_order': False, 'shape': ", shape, ", }\n");
  return absl::StrCat("\x93NUMPY\x01", std::string(1, '\0'),
                      std::string(1, static_cast<char>(header.size())), std::string(1, '\0'),
                      header, bytes);
}

TEST(ArrayFile, TheEndOfTheNameTellsTheType) {
  const struct {
    const char* name;
    const char* datatype;
    int64_t size;
  } kCases[] = {
      {"a.u8", "UINT8", 1}, {"b.s32", "INT32", 4}, {"c.s64", "INT64", 8}, {"d.f32", "FP32", 4}};
  for (const auto& one : kCases) {
    ASSERT_OK_AND_ASSIGN(const NpyArray array,
                         ParseArray(one.name, std::string(12 * one.size, 'x'), {2, 3}));
    EXPECT_EQ(array.datatype, one.datatype);
    EXPECT_THAT(array.shape, ElementsAre(2, 2, 3));
    EXPECT_EQ(array.bytes.size(), 12 * one.size);
  }
  ASSERT_OK_AND_ASSIGN(const NpyArray labels, ParseArray("labels.u8", "12345", {}));
  EXPECT_THAT(labels.shape, ElementsAre(5));
}

TEST(ArrayFile, NumPysFilesTellTheirShape) {
  EXPECT_TRUE(HasShape("a.npy"));
  EXPECT_FALSE(HasShape("npy.u8"));
  ASSERT_OK_AND_ASSIGN(const NpyArray array,
                       ParseArray("a.npy", NpyFile("|u1", "(2, 3)", "abcdef"), {}));
  EXPECT_EQ(array.datatype, "UINT8");
  EXPECT_THAT(array.shape, ElementsAre(2, 3));
}

TEST(ArrayFile, RefusesWhatHoldsNoExamples) {
  const struct {
    const char* name;
    std::string bytes;
    std::vector<int64_t> example;
    const char* message;
  } kCases[] = {
      {"a.bin",
       "abc",
       {3},
       "a.bin: its name does not tell the type of its elements; it must end in"},
      {"u8", "abc", {3}, "u8: its name does not tell the type"},
      {"a.u8", "abcd", {3}, "a.u8 has 4 bytes, not a multiple of 3, which one example of 3 has"},
      {"a.f32", "abcdef", {}, "a.f32 has 6 bytes, not a multiple of 4, which one element has"},
      {"a.f32", "abcdefgh", {1, 2, 2}, "not a multiple of 16, which one example of 1x2x2 has"},
      {"a.u8", "abc", {2, 2}, "a.u8 has 3 bytes, fewer than one example of 2x2 has"},
      {"a.u8", "abc", {int64_t{1} << 40, int64_t{1} << 40}, "fewer than one example"},
      {"a.npy", "abc", {}, "a.npy: not a .npy file that can be read"},
      {"a.npy", NpyFile("<f4", "()", "abcd"), {}, "a.npy is of shape [], which has no examples"},
      {"a.npy", NpyFile("<f4", "(0, 3)", ""), {}, "a.npy is of shape [0x3], which has no examples"},
  };
  for (const auto& one : kCases) {
    EXPECT_THAT(ParseArray(one.name, one.bytes, one.example),
                StatusIs(absl::StatusCode::kInvalidArgument, one.message));
  }
}

TEST(ArrayFile, BytesNeedNoEndingOfTheirName) {
  ASSERT_OK_AND_ASSIGN(const NpyArray array, ParseBytes("a.bin", "abcdef", {3}));
  EXPECT_EQ(array.datatype, "UINT8");
  EXPECT_EQ(array.shape, (std::vector<int64_t>{2, 3}));
  EXPECT_THAT(ParseBytes("a.bin", "abcd", {3}),
              StatusIs(absl::StatusCode::kInvalidArgument,
                       "a.bin has 4 bytes, not a multiple of 3, which one example of 3 has"));
}

}  // namespace
}  // namespace tilewire::client
