// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/cases_taken.h"

#include <fstream>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

constexpr char kFile[] = "tests/engine/primitives/cases_taken.txt";

struct Counts {
  int taken = 0, asked = 0;
};

// "SoftmaxTest.EveryAxis", without the row that is a parameter.
std::string NameOf(const ::testing::TestInfo& test) {
  const std::string suite = test.test_suite_name(), name = test.name();
  return absl::StrCat(suite.substr(suite.rfind('/') + 1), ".", name.substr(0, name.find('/')));
}

// The lines "row test taken/asked" and "row due" of the file.
struct Declared {
  std::map<std::pair<std::string, std::string>, std::string> counts;  // of {row, test}
  std::set<std::string> due;
};

Declared ReadDeclared() {
  Declared declared;
  std::ifstream file(kFile);
  EXPECT_TRUE(file.is_open()) << kFile << " is not among the test's files";
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ');
    if (words.size() == 3) {
      declared.counts[{words[0], words[1]}] = words[2];
    } else {
      EXPECT_EQ(words, (std::vector<std::string>{words[0], "due"})) << kFile;
      declared.due.insert(words[0]);
    }
  }
  return declared;
}

class Judge final : public ::testing::EmptyTestEventListener {
 public:
  void Count(absl::string_view row, bool taken) {
    Counts& counts = counts_[std::string(row)];
    ++counts.asked;
    if (taken) ++counts.taken;
  }

 private:
  void OnTestStart(const ::testing::TestInfo&) override { counts_.clear(); }

  // A test that ended early has not asked for all of its cases.
  void OnTestEnd(const ::testing::TestInfo& test) override {
    if (counts_.empty() || test.result()->HasFatalFailure()) return;
    static const auto* const declared = new auto(ReadDeclared());
    const std::string name = NameOf(test);
    for (const auto& [row, counts] : counts_) {
      const std::string found = absl::StrCat(counts.taken, "/", counts.asked);
      ::testing::Test::RecordProperty(absl::StrCat("cases_taken ", row), found);
      if (declared->due.contains(row)) continue;
      const auto line = declared->counts.find({row, name});
      EXPECT_EQ(found, line == declared->counts.end() ? "nothing" : line->second)
          << row << " takes that many of the cases of " << name << "; " << kFile
          << " declares the other. If it is meant: tests/engine/primitives/cases_taken.py";
    }
  }

  std::map<std::string, Counts> counts_;
};

// gtest owns it.
Judge* TheJudge() {
  static Judge* const judge = [] {
    auto* made = new Judge;
    ::testing::UnitTest::GetInstance()->listeners().Append(made);
    return made;
  }();
  return judge;
}

}  // namespace

void CountCase(absl::string_view row, bool taken) { TheJudge()->Count(row, taken); }

}  // namespace tilewire::testing
