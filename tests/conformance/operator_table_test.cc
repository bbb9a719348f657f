// SPDX-License-Identifier: Apache-2.0
//
// Each operator at each opset and element type that ONNX has for it, against numpy: the cases that
// operator_table.py writes.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>
#include <string>

#include "gtest/gtest.h"
#include "tests/conformance/conformance_case.h"

namespace tilewire::testing {
namespace {

// Fewer are a loss.
constexpr int kPassedOfTable = 7028;

// Reads what operator_table.py writes.
class TableReader {
 public:
  explicit TableReader(const std::string& path) {
    std::stringstream bytes;
    bytes << std::ifstream(path, std::ios::binary).rdbuf();
    bytes_ = bytes.str();
  }

  bool AtEnd() const { return at_ >= bytes_.size(); }
  std::string String() {
    const uint32_t size = Number();
    at_ += size;
    return bytes_.substr(at_ - size, size);
  }
  std::vector<std::string> Strings() {
    std::vector<std::string> strings(Number());
    for (std::string& string : strings) string = String();
    return strings;
  }

 private:
  uint32_t Number() {
    uint32_t number = 0;
    std::memcpy(&number, bytes_.data() + at_, sizeof(number));
    at_ += sizeof(number);
    return number;
  }

  std::string bytes_;
  size_t at_ = 0;
};

struct Refusals {
  int count = 0;
  std::string last;
};

TEST(OperatorTableTest, EveryOperatorOpsetAndTypeAgreesWithNumpy) {
  const auto engine = Engine::Create({.threads = 1});
  ASSERT_TRUE(engine.ok()) << engine.status();
  TableReader table(std::getenv("TILEWIRE_OPERATOR_TABLE"));
  const std::string scratch = ::testing::TempDir() + "/operator_table.onnx";
  int cases = 0, passed = 0;
  std::map<std::string, Refusals> refused;  // by operator and type
  while (!table.AtEnd()) {
    const std::string name = table.String();
    CaseFiles files;
    files.model = table.String();
    files.inputs = table.Strings();
    files.outputs = table.Strings();
    const ConformanceResult result = RunConformanceCase(**engine, files, scratch);
    ++cases;
    if (result.outcome == ConformanceResult::Outcome::kPassed) ++passed;
    if (result.outcome == ConformanceResult::Outcome::kRefused) {
      Refusals& same = refused[name.substr(0, name.find(" opset"))];
      ++same.count;
      same.last = result.reason;
    }
    EXPECT_NE(result.outcome, ConformanceResult::Outcome::kWrong) << name << ": " << result.reason;
  }
  for (const auto& [name, same] : refused) {
    std::printf("refused  %s at %d opsets: %s\n", name.c_str(), same.count, same.last.c_str());
  }
  std::printf("%d of %d cases passed\n", passed, cases);
  EXPECT_GE(passed, kPassedOfTable);
}

}  // namespace
}  // namespace tilewire::testing
