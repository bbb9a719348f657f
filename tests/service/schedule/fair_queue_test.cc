// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/fair_queue.h"

#include <gtest/gtest.h>

#include <deque>

#include "service/schedule/admission.h"
#include "service/schedule/cost.h"
#include "tests/service/schedule/recorded_work.h"

namespace tilewire::service {
namespace {

constexpr absl::Duration kShort = absl::Milliseconds(1), kLong = absl::Milliseconds(100);

class FairQueueTest : public ::testing::Test {
 protected:
  RecordedWork* Push(WorkTerms terms, absl::Duration expected = kShort,
                     absl::Duration may_wait = absl::Seconds(10)) {
    works_.emplace_back(std::move(terms));
    queue_.Push(&works_.back(), expected, now_ + may_wait);
    return &works_.back();
  }

  const absl::Time now_ = absl::FromUnixSeconds(1000);
  std::deque<RecordedWork> works_;
  FairQueue queue_;
};

TEST_F(FairQueueTest, EqualRequestsAreServedInTheOrderOfTheirArrival) {
  std::vector<Work*> pushed;
  // Deadlines that differ by less than a step, in any order.
  for (int i = 0; i < 20; ++i) {
    pushed.push_back(Push(TermsOf("a"), kShort, absl::Seconds(10) - absl::Milliseconds(i)));
  }
  std::vector<Work*> popped;
  while (Work* work = queue_.Pop()) popped.push_back(work);
  // The step's border may lie among them; within it the order holds.
  ASSERT_EQ(popped.size(), pushed.size());
  int inversions = 0;
  for (size_t i = 1; i < popped.size(); ++i) {
    const auto place = [&](Work* w) { return std::find(pushed.begin(), pushed.end(), w); };
    inversions += place(popped[i]) < place(popped[i - 1]) ? 1 : 0;
  }
  EXPECT_LE(inversions, 1);
}

TEST_F(FairQueueTest, HigherPriorityThenEarlierDeadlineGoesFirst) {
  Work* late = Push(TermsOf("a"), kShort, absl::Seconds(9));
  Work* early = Push(TermsOf("a"), kShort, absl::Seconds(2));
  WorkTerms urgent = TermsOf("a");
  urgent.priority = 1;
  Work* first = Push(urgent, kShort, absl::Seconds(20));
  EXPECT_EQ(queue_.Pop(), first);
  EXPECT_EQ(queue_.Pop(), early);
  EXPECT_EQ(queue_.Pop(), late);
  EXPECT_EQ(queue_.Pop(), nullptr);
}

TEST_F(FairQueueTest, ModelsShareTheTimeWhateverTheyQueue) {
  for (int i = 0; i < 10; ++i) Push(TermsOf("big"), kLong);
  for (int i = 0; i < 200; ++i) Push(TermsOf("small"), kShort);
  // In the time of five big ones, the small ones get as much: every one of the first hundred or so.
  int big = 0, small = 0;
  while (small < 200) {
    const Work* work = queue_.Pop();
    (work->terms().model == "big" ? big : small) += 1;
  }
  EXPECT_LE(big, 3) << "200 small ones take the time of two big ones";
  EXPECT_GE(big, 1);
}

TEST_F(FairQueueTest, AModelGainsNoCreditByBeingIdle) {
  Push(TermsOf("busy"), kLong);
  for (int i = 0; i < 50; ++i) {
    queue_.Pop();
    Push(TermsOf("busy"), kLong);
  }
  for (int i = 0; i < 10; ++i) Push(TermsOf("new"), kLong);
  int fresh = 0;
  for (int i = 0; i < 4; ++i) {
    Push(TermsOf("busy"), kLong);
    fresh += queue_.Pop()->terms().model == "new" ? 1 : 0;
  }
  EXPECT_LE(fresh, 3) << "the model that was idle took everything";
}

TEST_F(FairQueueTest, RemovedWorkIsGone) {
  Work* kept = Push(TermsOf("a"));
  Work* removed = Push(TermsOf("a"));
  EXPECT_TRUE(queue_.Remove(removed));
  EXPECT_FALSE(queue_.Remove(removed));
  EXPECT_EQ(queue_.size(), 1);
  EXPECT_EQ(queue_.Pop(), kept);
  EXPECT_FALSE(queue_.Remove(kept));
}

TEST_F(FairQueueTest, ExpiredWorkLeavesAtOnce) {
  Work* late = Push(TermsOf("a"), kShort, absl::Seconds(1));
  Push(TermsOf("b"), kShort, absl::Seconds(5));
  EXPECT_TRUE(queue_.TakeExpired(now_ + absl::Milliseconds(999)).empty());
  EXPECT_EQ(queue_.NextExpiry(), now_ + absl::Seconds(1));
  EXPECT_EQ(queue_.TakeExpired(now_ + absl::Seconds(1)), std::vector<Work*>{late});
  EXPECT_EQ(queue_.SizeOf("a"), 0);
  EXPECT_EQ(queue_.SizeOf("b"), 1);
}

TEST_F(FairQueueTest, OnlyShortWorkOfKnownLengthIsPoppedAsSuch) {
  Push(TermsOf("long"), kLong);
  Push(TermsOf("unknown"), absl::ZeroDuration());
  EXPECT_EQ(queue_.PopShort(kLong), nullptr);
  Push(TermsOf("mixed"), kLong);
  Push(TermsOf("mixed"), kShort)->set_operations(std::nullopt);
  Work* behind = Push(TermsOf("mixed"), kShort);
  EXPECT_EQ(queue_.PopShort(kShort / 2), nullptr) << "longer than asked for";
  EXPECT_EQ(queue_.PopShort(kLong), behind) << "also behind long work";
}

TEST_F(FairQueueTest, ShortWorkIsCountedWhileItIsInTheOrder) {
  Push(TermsOf("a"), kLong);
  Push(TermsOf("a"), absl::ZeroDuration());
  WorkTerms parallel = TermsOf("a");
  parallel.may_run_serially = false;
  Push(parallel);
  EXPECT_EQ(queue_.short_in_order(), 0);
  RecordedWork* withdrawn = Push(TermsOf("b"));
  RecordedWork* expiring = Push(TermsOf("b"), kShort, absl::Seconds(1));
  RecordedWork* last = Push(TermsOf("b"));
  EXPECT_EQ(queue_.short_in_order(), 3);
  queue_.Remove(withdrawn);
  EXPECT_EQ(queue_.short_in_order(), 2);
  EXPECT_EQ(queue_.TakeExpired(now_ + absl::Seconds(1)), std::vector<Work*>{expiring});
  EXPECT_EQ(queue_.short_in_order(), 1);
  EXPECT_EQ(queue_.PopShort(kLong), last);
  EXPECT_EQ(queue_.short_in_order(), 0);
  queue_.Park(last);
  EXPECT_EQ(queue_.short_in_order(), 0);
  queue_.Unpark(last->terms().cost_key);
  EXPECT_EQ(queue_.short_in_order(), 1);
}

TEST_F(FairQueueTest, ParkedWorkIsOutOfTheOrderUntilItIsUnparked) {
  RecordedWork* first = Push(TermsOf("a"));
  RecordedWork* second = Push(TermsOf("a"), kShort, absl::Seconds(1));
  RecordedWork* third = Push(TermsOf("a"), kLong, absl::Seconds(1));
  ASSERT_EQ(queue_.Pop(), second);
  ASSERT_EQ(queue_.Pop(), third);
  queue_.Park(third);
  queue_.Park(second);
  EXPECT_EQ(queue_.size(), 3);
  EXPECT_EQ(queue_.SizeOf("a"), 3);
  EXPECT_EQ(queue_.in_order(), 1);
  EXPECT_EQ(queue_.WorkAhead("a", 0), 2 * kShort + kLong);
  EXPECT_EQ(queue_.Pop(), first);
  EXPECT_EQ(queue_.Pop(), nullptr);
  EXPECT_EQ(queue_.Unpark(TermsOf("b").cost_key), 0);
  EXPECT_EQ(queue_.Unpark(TermsOf("a").cost_key), 2);
  EXPECT_EQ(queue_.Pop(), second) << "where it was";
  EXPECT_EQ(queue_.Pop(), third);
}

TEST_F(FairQueueTest, ParkedWorkIsRemovedAndExpires) {
  RecordedWork* removed = Push(TermsOf("a"));
  RecordedWork* late = Push(TermsOf("a"), kShort, absl::Seconds(20));
  queue_.Park(static_cast<RecordedWork*>(queue_.Pop()));
  queue_.Park(static_cast<RecordedWork*>(queue_.Pop()));
  EXPECT_TRUE(queue_.Remove(removed));
  EXPECT_EQ(queue_.TakeExpired(now_ + absl::Seconds(30)), std::vector<Work*>{late});
  EXPECT_EQ(queue_.size(), 0);
  EXPECT_EQ(queue_.in_order(), 0);
  EXPECT_EQ(queue_.Unpark(TermsOf("a").cost_key), 0);
}

TEST_F(FairQueueTest, WorkAheadIsTheOwnBacklogAndAsMuchOfTheOthers) {
  for (int i = 0; i < 5; ++i) Push(TermsOf("a"), kLong);
  Push(TermsOf("b"), kShort);
  EXPECT_EQ(queue_.WorkAhead("a", 0), 5 * kLong + kShort);
  EXPECT_EQ(queue_.WorkAhead("b", 0), 2 * kShort);
  EXPECT_EQ(queue_.WorkAhead("c", 0), absl::ZeroDuration());
}

TEST_F(FairQueueTest, WorkOfALowerPriorityIsNotAhead) {
  WorkTerms hurried = TermsOf("a");
  hurried.priority = 1;
  for (int i = 0; i < 3; ++i) Push(TermsOf("a"), kLong);
  Push(hurried, kShort);
  EXPECT_EQ(queue_.WorkAhead("a", -1), 3 * kLong + kShort);
  EXPECT_EQ(queue_.WorkAhead("a", 0), 3 * kLong + kShort);
  EXPECT_EQ(queue_.WorkAhead("a", 1), kShort);
  EXPECT_EQ(queue_.WorkAhead("a", 2), absl::ZeroDuration());
}

TEST(CostTableTest, JudgesOtherShapesOfAModelByItsRate) {
  CostTable costs;
  EXPECT_EQ(costs.AtItsRate("a", 1000), absl::ZeroDuration());
  costs.RecordRate("a", 1000, absl::Milliseconds(10));
  EXPECT_EQ(costs.AtItsRate("a", 64'000), absl::Milliseconds(640));
  EXPECT_EQ(costs.AtItsRate("b", 64'000), absl::ZeroDuration());
  EXPECT_EQ(costs.AtItsRate("a", 0), absl::ZeroDuration()) << "operations that are not known";
  for (int i = 0; i < 3; ++i) costs.RecordRate("a", 1000, absl::Seconds(5));
  EXPECT_LT(costs.AtItsRate("a", 1000), absl::Milliseconds(11)) << "runs that were held up";
  for (int i = 0; i < 50; ++i) costs.RecordRate("a", 1000, absl::Milliseconds(20));
  EXPECT_NEAR(absl::ToDoubleMilliseconds(costs.AtItsRate("a", 1000)), 20, 0.5);
  EXPECT_EQ(costs.AtItsRate("a", 1'000'000), costs.AtItsRate("a", 64'000)) << "too far away";
}

TEST(CostTableTest, FollowsTheLastRunsAndForgetsTheFirst) {
  constexpr uint64_t kKey = 7;
  CostTable costs;
  EXPECT_EQ(costs.Expected(kKey), absl::ZeroDuration());
  costs.Record(kKey, absl::Seconds(1));  // compiled its plan
  EXPECT_EQ(costs.Expected(kKey), absl::Seconds(1));
  costs.Record(kKey, kShort);
  EXPECT_EQ(costs.Expected(kKey), kShort);
  for (int i = 0; i < 50; ++i) costs.Record(kKey, 3 * kShort);
  EXPECT_GT(costs.Expected(kKey), 2.9 * kShort);
  costs.Record(kKey, absl::Seconds(1));
  EXPECT_LT(costs.Expected(kKey), 4 * kShort) << "one run that something else held up";
  for (int i = 0; i < 10; ++i) costs.Record(kKey, kShort);
  EXPECT_LT(costs.Expected(kKey), 1.1 * kShort);
  costs.Record(0, kLong);
  EXPECT_EQ(costs.Expected(0), absl::ZeroDuration());
}

TEST(AdmissionTest, WhatIsLentIsNotFreeForTickets) {
  Admission admission(100);
  Ticket ticket(&admission);
  ASSERT_TRUE(ticket.Charge(60, "a request").ok());
  EXPECT_FALSE(admission.Lend(41)) << "what tickets hold they keep";
  EXPECT_EQ(admission.bytes(), 60);
  EXPECT_EQ(admission.TakeShortage(), 1) << "what waits for its readers makes way for a load";
  EXPECT_TRUE(admission.Lend(30));
  EXPECT_EQ(admission.bytes(), 90);
  EXPECT_EQ(admission.HeldByRequests(), 60);
  EXPECT_EQ(ticket.Charge(11, "tensors").message(),
            "memory for tensors of 11 bytes is not free now: requests hold 60, and a model that "
            "loads 30, of 100 bytes (--max_work_mb)");
  EXPECT_TRUE(ticket.Charge(10, "tensors").ok());
  ticket.GiveBack(10);
  admission.TakeBack(30);
  EXPECT_TRUE(ticket.Charge(40, "tensors").ok());
  admission.SetMaxBytes(50);
  EXPECT_EQ(admission.bytes(), 100) << "what it holds it keeps";
  ticket.GiveBack(60);
  EXPECT_EQ(ticket.Charge(11, "tensors").code(), absl::StatusCode::kResourceExhausted);
  EXPECT_TRUE(ticket.Charge(10, "tensors").ok());
}

TEST(AdmissionTest, TicketsNeverHoldMoreThanTheBudgetAndGiveItBack) {
  Admission admission(100);
  {
    Ticket first(&admission), second(&admission);
    EXPECT_TRUE(first.Charge(60, "a request").ok());
    EXPECT_EQ(second.Charge(41, "a request").code(), absl::StatusCode::kUnavailable);
    EXPECT_EQ(second.Charge(101, "a request").code(), absl::StatusCode::kResourceExhausted);
    EXPECT_TRUE(second.Charge(40, "a request").ok());
    // It holds so much itself that the rest will never be free.
    EXPECT_EQ(second.Charge(61, "tensors").code(), absl::StatusCode::kResourceExhausted);
    first.GiveBack(10);
    EXPECT_EQ(admission.bytes(), 90);
  }
  EXPECT_EQ(admission.bytes(), 0);
}

// Its memory is the engine's: counted here too, the engine would free what the run is about to use.
TEST(AdmissionTest, EverythingButRunsIsToldToWhoPoolsTheirMemory) {
  int64_t beside = 0;
  Admission admission(100, [&beside](int64_t more) { beside += more; });
  ASSERT_TRUE(admission.Lend(10));
  {
    Ticket ticket(&admission);
    ASSERT_TRUE(ticket.Charge(20, "a request").ok());
    EXPECT_EQ(beside, 30);
    {
      PassingCharge copy(&ticket);
      ASSERT_TRUE(copy.Add(5, "a copy").ok());
      EXPECT_EQ(beside, 35);
    }
    ASSERT_TRUE(ticket.ChargeRun(40, "tensors").ok());
    EXPECT_EQ(beside, 30);
    EXPECT_EQ(admission.bytes(), 70);
    EXPECT_FALSE(ticket.Charge(31, "tensors").ok());
    EXPECT_EQ(beside, 30) << "what is refused is not held";
    ASSERT_TRUE(ticket.ChangeTo(50, "an answer").ok());
    EXPECT_EQ(beside, 60) << "an answer is not pooled";
    EXPECT_EQ(admission.bytes(), 60);
    ASSERT_TRUE(ticket.ChangeTo(60, "an answer").ok());
    EXPECT_EQ(beside, 70);
    ASSERT_TRUE(ticket.ChargeRun(30, "tensors").ok());
    ticket.GiveBack(75);
    EXPECT_EQ(beside, 10);
    EXPECT_EQ(ticket.bytes(), 15);
  }
  EXPECT_EQ(beside, 10);
  admission.TakeBack(10);
  EXPECT_EQ(beside, 0);
  EXPECT_EQ(admission.bytes(), 0);
}

}  // namespace
}  // namespace tilewire::service
