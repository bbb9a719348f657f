// SPDX-License-Identifier: Apache-2.0
//
// How long work is expected to take and to wait, and which is refused for that.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/schedule/dispatcher.h"
#include "tests/service/schedule/dispatcher_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;

TEST_F(DispatcherTest, WhatCannotBeAnsweredInItsTimeIsRefusedAtTheDoor) {
  Start({.max_waiting = 100, .max_wait = absl::Seconds(1), .express = false});
  Learn("slow", absl::Milliseconds(300));
  Block(TermsOf("other"));
  int admitted = 0;
  absl::Status refused;
  while (refused.ok()) {
    refused = dispatcher_->Submit(Make(TermsOf("slow")));
    admitted += refused.ok() ? 1 : 0;
    ASSERT_LT(admitted, 50);
  }
  EXPECT_EQ(refused.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(admitted, 4) << "0, 300, 600 and 900 ms of work ahead";
  EXPECT_EQ(dispatcher_->RetryAfter("slow"), absl::Milliseconds(1200));
  WorkTerms hurried = TermsOf("other");
  hurried.deadline = clock_.Now() + absl::Milliseconds(1);
  EXPECT_TRUE(dispatcher_->Submit(Make(hurried)).ok()) << "nothing of its model is ahead";
  open_.Notify();
}

TEST_F(DispatcherTest, ARefusalSaysWhatTakesTooLong) {
  Start({.max_waiting = 100, .max_wait = absl::Seconds(1), .express = false});
  Learn("slow", absl::Milliseconds(300));
  Block(TermsOf("other"));
  ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf("other"))).ok());
  WorkTerms hurried = TermsOf("slow");
  hurried.deadline = clock_.Now() + absl::Milliseconds(50);
  EXPECT_THAT(dispatcher_->Submit(Make(hurried)).ToString(),
              HasSubstr("UNAVAILABLE: it cannot be answered in its time: it takes about 300 ms, "
                        "about 0.0 ms of work are ahead of it, and its deadline is in 50 ms"));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf("slow"))).ok());
  EXPECT_THAT(dispatcher_->Submit(Make(TermsOf("slow"))).ToString(),
              HasSubstr("about 1200 ms of work are ahead of it, and it may wait for 1000 ms "
                        "(--max_queue_ms)"));
  open_.Notify();
}

TEST_F(DispatcherTest, WorkIsNotRefusedForWhatItsPriorityOvertakes) {
  Start({.max_waiting = 100, .max_wait = absl::Seconds(1), .express = false});
  Learn("slow", absl::Milliseconds(300));
  Block(TermsOf("other"));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf("slow"))).ok());
  WorkTerms important = TermsOf("slow");
  important.priority = 1;
  important.deadline = clock_.Now() + absl::Milliseconds(500);
  EXPECT_TRUE(dispatcher_->Submit(Make(important)).ok());
  important.priority = 0;
  EXPECT_FALSE(dispatcher_->Submit(Make(important)).ok());
  open_.Notify();
}

TEST_F(DispatcherTest, WorkWhoseTimeVariesIsNotRefusedForItsLastRuns) {
  Start(kNoExpress);
  Learn(Varying(), absl::Seconds(100));
  Block(Varying());
  WorkTerms terms = Varying();
  terms.deadline = clock_.Now() + absl::Seconds(5);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE(dispatcher_->Submit(Make(terms)).ok());
  open_.Notify();
}

TEST_F(DispatcherTest, AShapeThatHasNeverRunIsJudgedByItsModelsRate) {
  Start({.max_waiting = 100, .max_wait = absl::Seconds(1), .express = false});
  RecordedWork* known = Make(TermsOf("a"), [this] { clock_.Advance(absl::Milliseconds(10)); });
  known->set_operations(1'000'000'000);
  ASSERT_TRUE(dispatcher_->Submit(known).ok());
  dispatcher_->WaitIdle();
  Block(TermsOf("other"));
  int admitted = 0;
  const auto submit = [&] {
    WorkTerms terms = TermsOf("a");
    terms.cost_key = 64;
    RecordedWork* larger = Make(terms);
    larger->set_operations(64'000'000'000);  // 640 ms
    return dispatcher_->Submit(larger).ok();
  };
  while (submit()) ASSERT_LT(++admitted, 50);
  EXPECT_EQ(admitted, 2) << "0 and 640 ms of work ahead";
  open_.Notify();
}

TEST_F(DispatcherTest, WhereNothingOfAModelHasRunNothingIsRefusedForAGuess) {
  Start({.max_waiting = 20, .max_wait = absl::Seconds(1), .express = false});
  Block(TermsOf("other"));
  for (int i = 0; i < 20; ++i) {
    RecordedWork* work = Make(TermsOf("a"));
    work->set_operations(200'000'000'000);
    EXPECT_TRUE(dispatcher_->Submit(work).ok());
  }
  open_.Notify();
}

TEST_F(DispatcherTest, AModelIsChargedForTheTimeThatItTookNotForAGuess) {
  Start(kNoExpress);
  Learn("b", absl::Milliseconds(5));
  RecordedWork* first = Make(TermsOf("a"), [this] { clock_.Advance(absl::Milliseconds(1)); });
  first->set_operations(1'000'000'000'000);
  ASSERT_TRUE(dispatcher_->Submit(first).ok());
  dispatcher_->WaitIdle();
  Block(TermsOf("other"));
  RecordedWork *b = Make(TermsOf("b")), *a = nullptr;
  bool b_ran = false;
  a = Make(TermsOf("a"), [&] { b_ran = b->ran(); });
  ASSERT_TRUE(dispatcher_->Submit(b).ok());
  ASSERT_TRUE(dispatcher_->Submit(a).ok());
  open_.Notify();
  a->Wait();
  EXPECT_FALSE(b_ran) << "b has had 15 ms, a one";
}

}  // namespace
}  // namespace tilewire::service
