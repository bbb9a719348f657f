// SPDX-License-Identifier: Apache-2.0
#include "client/load/search/rate_belief.h"

#include <gtest/gtest.h>

#include <vector>

namespace tilewire::client {
namespace {

RateEvidence Holds(double rate) { return {.rate = rate, .answers = 300}; }
RateEvidence Fails(double rate) {
  return {.rate = rate, .answers = 300, .beyond = 9, .at_least = true};
}

struct RateRange {
  double low = 0, high = 0;
  double width() const { return high / low; }
};

RateRange RangeOf(const std::vector<RateEvidence>& runs) {
  RateBelief belief;
  for (const RateEvidence& run : runs) belief.Add(run);
  const std::vector<double> ends = belief.Quantiles({0.025, 0.975});
  return {ends[0], ends[1]};
}

TEST(RateEvidence, OneAnswerOfAHundredMayBeBeyondTheBound) {
  EXPECT_TRUE((RateEvidence{.answers = 300, .beyond = 3}.holds()));
  EXPECT_FALSE((RateEvidence{.answers = 300, .beyond = 4}.holds()));
  EXPECT_FALSE((RateEvidence{.answers = 300, .beyond = 3, .at_least = true}.holds()));
}

TEST(RateBelief, RunsThatAgreeNarrowTheRange) {
  const std::vector<RateEvidence> two = {Holds(100), Fails(200)};
  std::vector<RateEvidence> many = two;
  for (int i = 0; i < 6; ++i) {
    many.push_back(Holds(145));
    many.push_back(Fails(155));
  }
  EXPECT_LT(RangeOf(two).low, 105);
  EXPECT_GT(RangeOf(two).high, 190);
  EXPECT_GT(RangeOf(many).low, 135);
  EXPECT_LT(RangeOf(many).high, 165);
}

TEST(RateBelief, RunsThatContradictEachOtherWidenIt) {
  std::vector<RateEvidence> agree, contradict;
  for (int i = 0; i < 10; ++i) {
    agree.push_back(Holds(140));
    agree.push_back(Fails(160));
    contradict.push_back(i % 3 == 0 ? Fails(140) : Holds(140));
    contradict.push_back(i % 3 == 0 ? Holds(160) : Fails(160));
  }
  EXPECT_GT(RangeOf(contradict).width(), 1.1 * RangeOf(agree).width());
}

// A pause of the machine: all other runs at that rate and above hold.
TEST(RateBelief, OneFailureBelowRunsThatHoldIsNotTheLimit) {
  std::vector<RateEvidence> runs = {Fails(100), Holds(50)};
  for (const double rate : {100.0, 120.0, 150.0, 180.0})
    for (int i = 0; i < 4; ++i) runs.push_back(Holds(rate));
  for (int i = 0; i < 6; ++i) runs.push_back(Fails(220));
  EXPECT_GT(RangeOf(runs).low, 100);
  EXPECT_GT(RangeOf(runs).high, 180);
}

// Half of the runs hold in both; in one of them the machine was slow for all of the second half.
TEST(RateBelief, RunsLikeTheirNeighboursSayLess) {
  std::vector<RateEvidence> mixed, sorted;
  for (int i = 0; i < 20; ++i) {
    mixed.push_back(i % 2 == 0 ? Holds(150) : Fails(150));
    sorted.push_back(i < 10 ? Holds(150) : Fails(150));
  }
  EXPECT_GT(RangeOf(sorted).width(), RangeOf(mixed).width());
}

TEST(RateBelief, HowManyAnswersWereBeyondTheBoundCounts) {
  std::vector<RateEvidence> few, none;
  for (int i = 0; i < 10; ++i) {
    none.push_back(Holds(150));
    few.push_back({.rate = 150, .answers = 300, .beyond = 3});
  }
  none.push_back(Fails(300)), few.push_back(Fails(300));
  EXPECT_LT(RangeOf(few).high, RangeOf(none).high);
}

TEST(RateBelief, LongRunsAreEvidenceToo) {
  const RateRange range = RangeOf({{.rate = 100, .answers = 100'000, .beyond = 10},
                                   {.rate = 200, .answers = 100'000, .beyond = 50'000}});
  EXPECT_GT(range.low, 90);
  EXPECT_LT(range.high, 210);
}

}  // namespace
}  // namespace tilewire::client
