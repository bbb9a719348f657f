// SPDX-License-Identifier: Apache-2.0
//
// Every ONNX backend case: none may give a wrong answer, and as many as before must pass. Prints a
// table of what passed, and of what was refused with the reason.
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <map>

#include "gtest/gtest.h"
#include "tests/conformance/conformance_case.h"

namespace tilewire::testing {
namespace {

constexpr char kRoot[] = "/usr/share/libonnx-testdata/data";
constexpr int kPassedBefore = 1006;
constexpr int kGivenBefore = 1006;  // of these, with all inputs at run time
constexpr int kEmptiedAnsweredBefore = 1384;

// Cases whose answer contradicts the operator's document, with the reason.
const std::map<std::string, std::string>& Contradictions() {
  static const auto* const cases = new std::map<std::string, std::string>{
      {"node/test_adam_multiple",
       "has numbers of an epsilon of 0.01, which its node does not have"},
      {"node/test_cast_FLOAT_to_BFLOAT16", "cuts numbers that it ought to round to the nearest"},
      {"node/test_resize_downsample_scales_cubic_align_corners",
       "counts the corners of a result of 2.4 elements"},
      {"node/test_resize_downsample_scales_linear_align_corners",
       "counts the corners of a result of 2.4 elements"},
  };
  return *cases;
}

std::vector<std::string> CaseDirectories() {
  std::vector<std::string> directories;
  for (const char* kind : {"node", "simple", "pytorch-operator", "pytorch-converted"}) {
    std::error_code error;
    for (const auto& entry :
         std::filesystem::directory_iterator(std::filesystem::path(kRoot) / kind, error))
      directories.push_back(entry.path().string());
  }
  std::sort(directories.begin(), directories.end());
  return directories;
}

TEST(ConformanceTest, OnnxBackendCases) {
  const std::vector<std::string> directories = CaseDirectories();
  if (directories.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto engine = Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::string scratch = ::testing::TempDir() + "/conformance.onnx";
  int passed = 0, refused = 0, by_given[4] = {};
  for (const std::string& directory : directories) {
    const ConformanceResult result = RunConformanceCase(**engine, ReadCase(directory), scratch);
    const std::string name = directory.substr(sizeof(kRoot));
    switch (result.outcome) {
      case ConformanceResult::Outcome::kPassed:
        ++passed;
        ++by_given[static_cast<int>(result.given)];
        std::printf("passed   %s\n", name.c_str());
        break;
      case ConformanceResult::Outcome::kRefused:
        ++refused;
        std::printf("refused  %s: %s\n", name.c_str(), result.reason.c_str());
        break;
      case ConformanceResult::Outcome::kWrong:
        if (const auto known = Contradictions().find(name); known != Contradictions().end()) {
          std::printf("differs  %s: the case %s\n", name.c_str(), known->second.c_str());
          break;
        }
        std::printf("WRONG    %s: %s\n", name.c_str(), result.reason.c_str());
        ADD_FAILURE() << name << ": " << result.reason;
        break;
    }
  }
  std::printf(
      "%d of %zu cases passed (%d with all inputs at run time, %d with those that give no shapes, "
      "%d "
      "with the first, %d folded), %d refused\n",
      passed, directories.size(), by_given[0], by_given[1], by_given[2], by_given[3], refused);
  EXPECT_GE(passed, kPassedBefore);
  EXPECT_GE(by_given[static_cast<int>(Given::kAll)], kGivenBefore);
}

TEST(ConformanceTest, InputsWithoutElementsAreAnsweredOrRefused) {
  const std::vector<std::string> directories = CaseDirectories();
  if (directories.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto engine = Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::string scratch = ::testing::TempDir() + "/emptied.onnx";
  int answered = 0;
  for (const std::string& directory : directories) {
    const EmptiedResult result = RunEmptiedCase(**engine, ReadCase(directory), scratch);
    EXPECT_EQ(result.wrong, "") << directory;
    answered += result.answered;
  }
  std::printf("%d runs with an input without elements were answered\n", answered);
  EXPECT_GE(answered, kEmptiedAnsweredBefore);
}

TEST(ConformanceTest, SpoiltNodesAreAnsweredOrRefused) {
  const std::vector<std::string> directories = CaseDirectories();
  if (directories.empty()) GTEST_SKIP() << "libonnx-testdata is not installed";
  const auto engine = Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.status();
  const std::string scratch = ::testing::TempDir() + "/spoilt.onnx";
  int answered = 0;
  for (const std::string& directory : directories)
    answered += RunSpoiltCase(**engine, ReadCase(directory), scratch);
  std::printf("%d runs with a spoilt node were answered\n", answered);
  EXPECT_GT(answered, 0);
}

}  // namespace
}  // namespace tilewire::testing
