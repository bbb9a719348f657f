// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_tally.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr absl::Time kStart = absl::UnixEpoch();

class LoadTallyTest : public ::testing::Test {
 protected:
  static LoadOptions OneModel(double rate) {
    LoadOptions options;
    options.parts = {{.name = "tiny"}};
    options.profile = RateProfile(rate);
    options.duration = absl::ZeroDuration();
    return options;
  }

  // A request that was due then, and was answered after `latency`.
  void Answer(absl::Duration due, absl::Duration latency) {
    const absl::Time time = kStart + due;
    tally_.Count({.due = time, .sent = time, .answered = time + latency}, 0);
  }

  LoadTally tally_{OneModel(20), kStart};
};

std::vector<int64_t> CountsOf(const LoadReport& report) {
  std::vector<int64_t> counts;
  for (const LoadWindow& window : report.windows) counts.push_back(window.answered);
  return counts;
}

// The server answers nothing from second 2 to second 4.
TEST_F(LoadTallyTest, AnOutageIsSecondsWithoutAnswers) {
  for (int i = 0; i < 120; ++i) {
    const absl::Duration due = absl::Milliseconds(50 * i);
    const bool is_out = due >= absl::Seconds(2) && due < absl::Seconds(4);
    Answer(due, is_out ? absl::Seconds(4) - due : absl::Milliseconds(1));
  }
  const LoadReport report = tally_.Finish();
  EXPECT_THAT(CountsOf(report), ElementsAre(20, 20, 0, 0, 60, 20));
  EXPECT_EQ(report.windows[4].largest, absl::Seconds(2));
  EXPECT_THAT(report.windows[4].latencies, SizeIs(60));
}

TEST_F(LoadTallyTest, SecondsWithAHundredAnswersKeepTheirPercentilesAlone) {
  for (int i = 0; i < 99; ++i) Answer(absl::Milliseconds(i), absl::Milliseconds(1));
  for (int i = 0; i < 100; ++i) Answer(absl::Milliseconds(1000 + i), absl::Milliseconds(1));
  const LoadReport report = tally_.Finish();
  ASSERT_THAT(report.windows, SizeIs(2));
  EXPECT_THAT(report.windows[0].latencies, SizeIs(99));
  EXPECT_THAT(report.windows[1].latencies, IsEmpty());
  EXPECT_EQ(report.windows[1].p99, absl::Milliseconds(1));
}

// Until it is ended early, not until the last answer.
TEST_F(LoadTallyTest, AnOutageAtTheEndIsPartOfTheLoad) {
  for (int i = 0; i < 20; ++i) Answer(absl::Milliseconds(50 * i), absl::Milliseconds(1));
  tally_.EndEarly("it was told to stop", kStart + absl::Seconds(4.5), 70);
  tally_.EndEarly("for another reason", kStart + absl::Seconds(9), 0);
  const LoadReport report = tally_.Finish();
  EXPECT_EQ(report.ended_because, "it was told to stop");
  EXPECT_EQ(report.elapsed, absl::Seconds(4.5));
  EXPECT_EQ(report.waiting, 70);
  EXPECT_THAT(CountsOf(report), ElementsAre(20, 0, 0, 0));
}

// A second is whole although its last answer came before its end.
TEST_F(LoadTallyTest, ALoadLastsAsLongAsItWasTo) {
  LoadOptions options = OneModel(20);
  options.duration = absl::Seconds(3);
  LoadTally tally(options, kStart);
  for (int i = 0; i < 30; ++i) {
    const absl::Time time = kStart + absl::Milliseconds(50 * i);
    tally.Count({.due = time, .sent = time, .answered = time}, 0);
  }
  const LoadReport report = tally.Finish();
  EXPECT_EQ(report.elapsed, absl::Seconds(3));
  EXPECT_THAT(CountsOf(report), ElementsAre(20, 10, 0));
  EXPECT_EQ(report.windows[1].length_s, 1);
}

TEST(LoadTally, NamesRatesAsPeopleReadThem) {
  struct Case {
    const char* profile;
    const char* name;
  };
  constexpr Case kCases[] = {
      {"76.4517:1s,1234.56:1s", "open loop of 76.45/s 1s, 1235/s 1s, poisson"},
      {"5:3s,5-60:8s,5:3s", "open loop of 5/s 3s, 5-60/s 8s, 5/s 3s, poisson"}};
  LoadOptions options;
  options.parts = {{.name = "tiny"}};
  for (const Case& c : kCases) {
    options.profile = *RateProfile::Parse(c.profile);
    EXPECT_EQ(LoadTally(options, kStart).Finish().name, c.name);
  }
  options.profile = RateProfile(76.4517);
  EXPECT_EQ(LoadTally(options, kStart).Finish().name, "open loop of 76.45/s (poisson)");
}

}  // namespace
}  // namespace tilewire::client
