// SPDX-License-Identifier: Apache-2.0
//
// Inputs of loads: random ones and arrays of numpy.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "client/load/random_input.h"
#include "client/npy.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

TEST(RandomInput, FillsOpenDimensionsAndFollowsTheLayout) {
  const TensorMetadata metadata{"x", "FP32", {-1, 3, 4, 5}};
  const auto a = RandomInput(metadata, 2, 7, Layout::kNhwc, 1);
  ASSERT_THAT(a, IsOk());
  EXPECT_THAT(a->shape, ElementsAre(2, 4, 5, 3));
  EXPECT_EQ(a->bytes.size(), 2 * 3 * 4 * 5 * 4);
  EXPECT_EQ(a->bytes, RandomInput(metadata, 2, 7, Layout::kNhwc, 1)->bytes);
  EXPECT_NE(a->bytes, RandomInput(metadata, 2, 7, Layout::kNhwc, 2)->bytes);
  const auto open = RandomInput({"x", "INT64", {-1, 3, -1}}, 2, 7, Layout::kNchw, 1);
  EXPECT_THAT(open->shape, ElementsAre(2, 3, 7));
  EXPECT_THAT(RandomInput({"x", "BYTES", {1}}, 1, 1, Layout::kNchw, 0),
              StatusIs(absl::StatusCode::kUnimplemented));
}

// A .npy file of format 1.
std::string NpyFile(const std::string& header, const std::string& bytes) {
  return std::string("\x93NUMPY\x01\x00", 8) + static_cast<char>(header.size()) + '\0' + header +
         bytes;
}

TEST(Npy, ReadsTypeShapeAndBytes) {
  const auto array =
      ReadNpy(NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1), }\n", "12345678"));
  ASSERT_THAT(array, IsOk());
  EXPECT_EQ(array->datatype, "FP32");
  EXPECT_THAT(array->shape, ElementsAre(2, 1));
  EXPECT_EQ(array->bytes, "12345678");
  const auto one =
      ReadNpy(NpyFile("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }\n", "abc"));
  ASSERT_THAT(one, IsOk());
  EXPECT_THAT(one->shape, ElementsAre(3));
  const auto scalar =
      ReadNpy(NpyFile("{'descr': '<i8', 'fortran_order': False, 'shape': (), }\n", "12345678"));
  ASSERT_THAT(scalar, IsOk());
  EXPECT_THAT(scalar->shape, IsEmpty());
}

TEST(Npy, RefusesWhatItCannotRead) {
  struct Case {
    const char* why;
    std::string file;
  };
  const Case cases[] = {
      {"no header", "PK\x03\x04"},
      {"no header", NpyFile("{}", "").substr(0, 9)},
      {"of type '>f4'; save array.astype(array.dtype.newbyteorder('<'))",
       NpyFile("{'descr': '>f4', 'fortran_order': False, 'shape': (1,), }", "1234")},
      {"of type '|O', which are not numbers",
       NpyFile("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", "1234")},
      {"are records; save one field",
       NpyFile("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,), }", "1234")},
      {"column-major", NpyFile("{'descr': '<f4', 'fortran_order': True, 'shape': (1,), }", "1234")},
      {"its shape", NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", "1234")},
      {"holds 3 bytes",
       NpyFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }", "123")},
  };
  for (const Case& c : cases) {
    const auto array = ReadNpy(c.file);
    EXPECT_THAT(array, StatusIs(absl::StatusCode::kInvalidArgument)) << c.why;
    EXPECT_THAT(std::string(array.status().message()), HasSubstr(c.why));
  }
}

}  // namespace
}  // namespace tilewire::client
