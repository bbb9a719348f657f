// SPDX-License-Identifier: Apache-2.0
//
// An index beyond a container's end ends the process: of Abseil's containers in every build, of the
// standard library's in those that .bazelrc calls checked.
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/types/span.h"
#include "gtest/gtest.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG)
#if defined(NDEBUG) || !defined(_GLIBCXX_ASSERTIONS)
#error "--config=checked is part of debug and sanitizer builds"
#endif
#endif

namespace tilewire::testing {
namespace {

volatile size_t beyond = 3;  // unknown to the compiler

TEST(LibraryChecksDeathTest, AbseilsContainersInEveryBuild) {
  std::vector<int64_t> numbers = {1, 2, 3};
  const absl::InlinedVector<int64_t, 6> dims = {1, 2, 3};
  EXPECT_DEATH(absl::MakeSpan(numbers)[beyond] = 1, "");
  EXPECT_DEATH(numbers[0] = dims[beyond], "");
}

#ifdef _GLIBCXX_ASSERTIONS
TEST(LibraryChecksDeathTest, TheStandardLibrarysInCheckedBuilds) {
  std::vector<int64_t> numbers = {1, 2, 3}, none;
  std::array<int64_t, 3> few = {};
  EXPECT_DEATH(numbers[beyond] = 1, "Assertion '__n < this->size\\(\\)' failed");
  EXPECT_DEATH(few[beyond] = 1, "Assertion '__n < this->size\\(\\)' failed");
  EXPECT_DEATH(none.back() = 1, "Assertion '!this->empty\\(\\)' failed");
}
#endif

}  // namespace
}  // namespace tilewire::testing
