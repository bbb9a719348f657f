// SPDX-License-Identifier: Apache-2.0
//
// Random networks of all operators and of what passes look for, of ranks 0 to 8, as ONNX files:
// each is served or refused with a status, and what is served answers as the oracle does.
//
//   TILEWIRE_NETWORKS         how many (default 400)
//   TILEWIRE_FIRST_NETWORK    the first one (default 0); a network depends on its number alone
#include <cstdint>
#include <cstdlib>
#include <map>
#include <set>
#include <string>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "tests/fuzz/networks/network_runner.h"
#include "tests/fuzz/networks/node_guess.h"
#include "tests/fuzz/networks/patterns.h"
#include "tests/support/crash_note.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kMostWork = 200000;  // of a network, in operations
constexpr unsigned kMostSeconds = 60;  // of a network that computes without end

int64_t Setting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  int64_t value = fallback;
  if (text != nullptr) {
    EXPECT_TRUE(absl::SimpleAtoi(text, &value)) << name << "=" << text;
  }
  return value;
}

class RandomNetworksTest : public ::testing::Test {
 protected:
  // An exception ends the process, as it would end a server.
  void RunCase(int64_t index) noexcept {
    Random random(0x0e7f0e7f + static_cast<uint64_t>(index) * 0x9e3779b9);
    const int64_t opset = Pick<int64_t>(random, {7, 9, 11, 13, 13, 17, 17, 18, 20, 21, 23, 24, 25});
    NetworkMaker maker(random, opset, kMostWork);
    AddNeighbours(maker, index);
    const int64_t parts = random.Integer(0, 4);
    for (int64_t part = 0; part < parts; ++part) {
      if (Chance(random, 35)) {
        AddPattern(maker);
      } else {
        for (int64_t nodes = random.Integer(1, 3); nodes > 0; --nodes)
          AddNodeOf(maker, PickOf(random, table_));
      }
    }
    const onnx::ModelProto model = maker.Finish();
    const std::string became = runner_.Run(model, maker.inputs(), random);
    if (HasFailure()) std::fputs(model.DebugString().c_str(), stderr);
    ++became_[became];
    operators_.insert(maker.operators().begin(), maker.operators().end());
    neighbours_.insert(maker.neighbours().begin(), maker.neighbours().end());
  }

  // Two operators of which the second reads the first; in as many networks as there are pairs, each
  // pair comes once.
  void AddNeighbours(NetworkMaker& maker, int64_t index) {
    const auto count = static_cast<int64_t>(table_.size());
    const std::vector<Made> first = AddNodeOf(maker, table_[index % count]);
    if (!first.empty()) AddNodeOf(maker, table_[(index + index / count) % count], first[0]);
  }

  const std::vector<reader::OpRow> table_ = reader::OpTable();
  NetworkRunner runner_;
  std::map<std::string, int64_t> became_;
  std::set<std::string> operators_, neighbours_;  // that were in some network
};

TEST_F(RandomNetworksTest, AreRefusedOrAnswerAsTheOracleDoes) {
  const int64_t count = Setting("TILEWIRE_NETWORKS", 400);
  const int64_t first = Setting("TILEWIRE_FIRST_NETWORK", 0);
  InstallCrashNote("random network");
  for (int64_t i = first; i < first + count && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("TILEWIRE_FIRST_NETWORK=", i));
    NoteCase(i, kMostSeconds);
    RunCase(i);
  }
  NoteCase(-1, 0);
  for (const auto& [what, n] : became_)
    std::printf("%9lld %s\n", static_cast<long long>(n), what.c_str());
  std::printf("%9zu of %zu operators\n", operators_.size(), table_.size());
  std::printf("%9zu pairs of them, one read by the other\n", neighbours_.size());
  if (count < 400) return;
  // A generator that makes nothing but refusals tests nothing.
  EXPECT_GT(became_["is compared"], count / 2);
  EXPECT_GT(operators_.size(), table_.size() / 2);
}

}  // namespace
}  // namespace tilewire::testing
