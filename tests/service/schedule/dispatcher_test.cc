// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/dispatcher.h"

#include <gtest/gtest.h>

#include <memory>
#include <thread>
#include <vector>

#include "engine/threading/urgent_work.h"
#include "service/schedule/background_turn.h"
#include "tests/service/schedule/dispatcher_fixture.h"

namespace tilewire::service {
namespace {

TEST_F(DispatcherTest, RunsAllThatIsSubmittedByManyThreads) {
  Start();
  constexpr int kThreads = 4, kEach = 200;
  std::atomic<int> ran{0};
  for (int i = 0; i < kThreads * kEach; ++i) Make(TermsOf("a"), [&ran] { ++ran; });
  std::atomic<int> refused{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kEach; ++i) {
        if (!dispatcher_->Submit(works_[t * kEach + i].get()).ok()) ++refused;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  dispatcher_->WaitIdle();
  EXPECT_EQ(ran + refused, kThreads * kEach);
}

TEST_F(DispatcherTest, WithdrawnWorkNeitherRunsNorEnds) {
  Start(kNoExpress);
  RecordedWork* running = Block(TermsOf("a"));
  RecordedWork* waiting = Make(TermsOf("a"));
  ASSERT_TRUE(dispatcher_->Submit(waiting).ok());
  EXPECT_FALSE(dispatcher_->Withdraw(running));
  EXPECT_TRUE(dispatcher_->Withdraw(waiting));
  open_.Notify();
  dispatcher_->WaitIdle();
  EXPECT_FALSE(waiting->ran());
}

TEST_F(DispatcherTest, ExpiredWorkEndsAtOnceAndFreesItsPlace) {
  Start({.max_waiting = 1, .max_wait = absl::Seconds(5), .express = false});
  Block(TermsOf("a"));
  WorkTerms terms = TermsOf("a");
  terms.deadline = clock_.Now() + absl::Seconds(1);
  RecordedWork* late = Make(terms);
  ASSERT_TRUE(dispatcher_->Submit(late).ok());
  EXPECT_EQ(dispatcher_->Submit(Make(TermsOf("a"))).code(), absl::StatusCode::kUnavailable);
  clock_.Advance(absl::Seconds(2));
  dispatcher_->EndExpired();
  late->Wait();
  EXPECT_EQ(late->status().code(), absl::StatusCode::kDeadlineExceeded);
  RecordedWork* patient = Make(TermsOf("a"));
  ASSERT_TRUE(dispatcher_->Submit(patient).ok()) << "the place of the expired one";
  clock_.Advance(absl::Seconds(6));
  dispatcher_->EndExpired();
  patient->Wait();
  EXPECT_EQ(patient->status().code(), absl::StatusCode::kUnavailable) << "its wait, not its time";
  EXPECT_EQ(patient->refusal(), RequestRefusal::kTooLate);
  EXPECT_EQ(late->refusal(), RequestRefusal::kNone) << "its client's time, not the server's";
  open_.Notify();
}

TEST_F(DispatcherTest, SaysWhyItRefuses) {
  Start({.max_waiting = 2, .max_waiting_per_model = 0, .express = false});
  Learn("slow", absl::Seconds(1));
  Block(TermsOf("slow"));
  const auto refusal_of = [this](WorkTerms terms) {
    RecordedWork* work = Make(std::move(terms));
    dispatcher_->Submit(work).IgnoreError();
    return work->refusal();
  };
  EXPECT_EQ(refusal_of(TermsOf("slow")), RequestRefusal::kNone);
  EXPECT_EQ(refusal_of(TermsOf("slow")), RequestRefusal::kModelQueue);
  WorkTerms hasty = TermsOf("other");
  hasty.deadline = clock_.Now();
  EXPECT_EQ(refusal_of(hasty), RequestRefusal::kNone) << "its client's time, not the server's";
  EXPECT_EQ(refusal_of(TermsOf("other")), RequestRefusal::kNone);
  EXPECT_EQ(refusal_of(TermsOf("third")), RequestRefusal::kQueue);
  open_.Notify();
}

TEST_F(DispatcherTest, TellsWhatWaitsAndRunsOfEachModel) {
  Start(kNoExpress);
  EXPECT_TRUE(dispatcher_->Load().models.empty());
  Learn("a", absl::Seconds(1));
  Block(TermsOf("a"));
  for (const char* model : {"a", "a", "b"})
    ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf(model))).ok());
  DispatcherLoad load = dispatcher_->Load();
  EXPECT_EQ(load.busy, 1);
  EXPECT_EQ(load.models["a"].running, 1);
  EXPECT_EQ(load.models["a"].waiting, 2);
  EXPECT_EQ(load.models["a"].predicted_wait, absl::Seconds(2));
  EXPECT_EQ(load.models["b"].running, 0);
  EXPECT_EQ(load.models["b"].waiting, 1);
  open_.Notify();
}

TEST_F(DispatcherTest, OneModelLeavesRoomForOthers) {
  Start({.max_waiting = 4, .max_waiting_per_model = 2, .express = false});
  Block(TermsOf("a"));
  int admitted = 0;
  while (dispatcher_->Submit(Make(TermsOf("a"))).ok()) ++admitted;
  EXPECT_EQ(admitted, 3);
  EXPECT_TRUE(dispatcher_->Submit(Make(TermsOf("b"))).ok());
  EXPECT_FALSE(dispatcher_->Submit(Make(TermsOf("c"))).ok()) << "the whole queue is bounded too";
  open_.Notify();
}

TEST_F(DispatcherTest, BackgroundWorkWaitsForAllOthersAndLetsThemThroughBetweenItsSteps) {
  Start(kNoExpress);
  WorkTerms background = TermsOf("plans");
  background.work_class = WorkClass::kBackground;
  RecordedWork* request = Make(TermsOf("a"));
  RecordedWork* first = Make(background, [&] {
    ASSERT_TRUE(dispatcher_->Submit(request).ok());
    EXPECT_FALSE(request->ran()) << "the only thread runs this";
    dispatcher_->RunWaiting();
    EXPECT_TRUE(request->ran());
  });
  RecordedWork* second = Make(background);
  Block(TermsOf("a"));
  ASSERT_TRUE(dispatcher_->Submit(first).ok());
  ASSERT_TRUE(dispatcher_->Submit(second).ok());
  RecordedWork* ahead = Make(TermsOf("a"), [&] { EXPECT_FALSE(first->ran()); });
  ASSERT_TRUE(dispatcher_->Submit(ahead).ok());
  open_.Notify();
  dispatcher_->WaitIdle();
  EXPECT_TRUE(ahead->ran() && first->ran() && second->ran());
}

TEST_F(DispatcherTest, ATurnOfTheCallersIsTheOnlyBackgroundWork) {
  Start(kNoExpress);
  WorkTerms background = TermsOf("plans");
  background.work_class = WorkClass::kBackground;
  RecordedWork* plan = Make(background);
  RecordedWork* request = Make(TermsOf("a"));
  {
    BackgroundTurn turn(dispatcher_.get());
    ASSERT_TRUE(dispatcher_->Submit(plan).ok());
    ASSERT_TRUE(dispatcher_->Submit(request).ok());
    request->Wait();
    turn.MakeWay();
    EXPECT_FALSE(plan->ran());
  }
  plan->Wait();
  EXPECT_TRUE(plan->ran());
}

TEST_F(DispatcherTest, ATurnBeginsAfterTheRunningBackgroundWorkAndBeforeTheNext) {
  Start(kNoExpress);
  WorkTerms background = TermsOf("plans");
  background.work_class = WorkClass::kBackground;
  RecordedWork* first = Block(background);
  RecordedWork* second = Make(background);
  ASSERT_TRUE(dispatcher_->Submit(second).ok());
  bool ran_first = false, ran_second = true;
  std::thread loading([&] {
    BackgroundTurn turn(dispatcher_.get());
    ran_first = first->ran();
    ran_second = second->ran();
  });
  while (!dispatcher_->TurnAwaited()) std::this_thread::yield();
  open_.Notify();
  loading.join();
  EXPECT_TRUE(ran_first);
  EXPECT_FALSE(ran_second);
  dispatcher_->WaitIdle();
  EXPECT_TRUE(second->ran());
}

TEST_F(DispatcherTest, ATurnMakesWayForWhatWaitsButNotForEver) {
  Start(kNoExpress);
  Block(TermsOf("a"));
  BackgroundTurn turn(dispatcher_.get());
  RecordedWork* waiting = Make(TermsOf("a"));
  ASSERT_TRUE(dispatcher_->Submit(waiting).ok());
  turn.MakeWay();
  EXPECT_FALSE(waiting->ran()) << "the only thread is still busy";
  open_.Notify();
  waiting->Wait();
  turn.MakeWay();
  EXPECT_TRUE(waiting->ran());
}

TEST_F(DispatcherTest, ShortWorkRunsBesideLongWorkThatHoldsEveryThread) {
  Start();
  Learn("short", absl::Milliseconds(1));
  Block(TermsOf("long"));
  clock_.Advance(absl::Seconds(1));  // it has run for a while
  RecordedWork* work = Make(TermsOf("short"));
  ASSERT_TRUE(dispatcher_->Submit(work).ok());
  work->Wait();
  EXPECT_TRUE(work->ran());
  EXPECT_EQ(work->lane(), Lane::kExpress);
  open_.Notify();
}

// So that the compute threads offer it their cores.
TEST_F(DispatcherTest, WorkBesideLongWorkIsUrgentWhileItRuns) {
  Start();
  Learn("short", absl::Milliseconds(1));
  Block(TermsOf("long"));
  clock_.Advance(absl::Seconds(1));
  bool on_its_thread = true, on_another = false;
  RecordedWork* work = Make(TermsOf("short"), [&] {
    on_its_thread = threading::UrgentWork::IsUnderWayElsewhere();
    std::thread([&] { on_another = threading::UrgentWork::IsUnderWayElsewhere(); }).join();
  });
  ASSERT_TRUE(dispatcher_->Submit(work).ok());
  work->Wait();
  EXPECT_FALSE(on_its_thread);
  EXPECT_TRUE(on_another);
  open_.Notify();
}

TEST_F(DispatcherTest, WorkDoesNotOvertakeWhatEndsBeforeItWould) {
  Start();
  Learn("equal", absl::Milliseconds(5));
  Learn("shorter", absl::Milliseconds(1));
  WorkTerms running = TermsOf("equal");
  running.may_run_serially = false;  // so that it holds the arena's thread
  Block(running);
  clock_.Advance(absl::Milliseconds(1));  // 4 ms are left
  ExpectOvertakes(TermsOf("shorter"), TermsOf("equal"));
}

TEST_F(DispatcherTest, WorkThatIsOverSoonerThanAWakeUpRunsWhereItIsSubmitted) {
  Start();
  Learn("tiny", absl::Microseconds(100), /*runs=*/20);
  std::thread::id ran_on;
  RecordedWork* after = Make(TermsOf("other"));
  RecordedWork* tiny = Make(TermsOf("tiny"), [&] {
    ran_on = std::this_thread::get_id();
    EXPECT_TRUE(dispatcher_->Submit(after).ok());  // waits for the only token
    EXPECT_FALSE(after->ran());
  });
  ASSERT_TRUE(dispatcher_->Submit(tiny).ok());
  EXPECT_TRUE(tiny->ran());
  EXPECT_EQ(tiny->lane(), Lane::kExpress);
  EXPECT_EQ(ran_on, std::this_thread::get_id());
  after->Wait();
  EXPECT_EQ(after->lane(), Lane::kArena);
  dispatcher_->WaitIdle();
}

TEST_F(DispatcherTest, WhereSeveralComeAtOnceNoneRunsWhereItIsSubmitted) {
  Start();
  Learn("tiny", absl::Microseconds(100), /*runs=*/20);
  Block(TermsOf("long"));
  for (int i = 0; i < 20; ++i) ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf("tiny"))).ok());
  open_.Notify();
  dispatcher_->WaitIdle();
  std::thread::id ran_on;
  RecordedWork* next = Make(TermsOf("tiny"), [&] { ran_on = std::this_thread::get_id(); });
  ASSERT_TRUE(dispatcher_->Submit(next).ok());
  next->Wait();
  EXPECT_NE(ran_on, std::this_thread::get_id());
}

TEST_F(DispatcherTest, TinyWorkWaitsForATokenAsOtherWorkDoes) {
  Start();
  Learn("tiny", absl::Microseconds(100), /*runs=*/20);
  Block(TermsOf("long"));  // just begun: the express thread waits, too
  RecordedWork* tiny = Make(TermsOf("tiny"));
  ASSERT_TRUE(dispatcher_->Submit(tiny).ok());
  EXPECT_FALSE(tiny->ran());
  open_.Notify();
  tiny->Wait();
}

TEST_F(DispatcherTest, WorkWhoseTimeVariesLeavesTheExpressThreadToOthers) {
  Start();
  Learn("tiny", absl::Milliseconds(1));
  Learn(Varying(), absl::Milliseconds(1));
  Block(Varying());
  clock_.Advance(absl::Seconds(1));
  ExpectOvertakes(TermsOf("tiny"), Varying());
}

TEST_F(DispatcherTest, WorkThatHasNeverRunRunsBesideLongWorkAndIsTimed) {
  Start();
  Block(TermsOf("long"));
  clock_.Advance(absl::Seconds(1));
  for (int i = 0; i < 2; ++i) {
    RecordedWork* work = Make(TermsOf("new"), [this] { clock_.Advance(absl::Milliseconds(1)); });
    ASSERT_TRUE(dispatcher_->Submit(work).ok());
    work->Wait();
    EXPECT_EQ(work->lane(), Lane::kExpress);
  }
  open_.Notify();
}

TEST_F(DispatcherTest, WorkThatHasNeverRunWaitsForShortWork) {
  Start();
  Block(TermsOf("short"));  // it has just begun
  RecordedWork* work = Make(TermsOf("new"));
  ASSERT_TRUE(dispatcher_->Submit(work).ok());
  EXPECT_FALSE(work->ran());
  open_.Notify();
  work->Wait();
  EXPECT_EQ(work->lane(), Lane::kArena);
}

TEST_F(DispatcherTest, WorkOfUnknownTimeIsJudgedByItsOperations) {
  Start();
  Block(TermsOf("long"));
  clock_.Advance(absl::Seconds(1));
  RecordedWork* large = Make(TermsOf("large"));
  large->set_operations(1'000'000'000'000);
  RecordedWork* small = Make(TermsOf("small"));
  small->set_operations(1'000'000);
  ASSERT_TRUE(dispatcher_->Submit(large).ok());
  ASSERT_TRUE(dispatcher_->Submit(small).ok());
  small->Wait();
  EXPECT_EQ(small->lane(), Lane::kExpress);
  EXPECT_FALSE(large->ran());
  open_.Notify();
}

// Two threads: one prepares, the other one serves what does not need it.
class PreparationTest : public DispatcherTest {
 protected:
  PreparationTest() { dispatcher_ = std::make_unique<Dispatcher>(&two_, kNoExpress, &clock_); }
  ~PreparationTest() override { dispatcher_ = nullptr; }

  RecordedWork* Submit(const std::string& model, std::function<void()> body = nullptr) {
    RecordedWork* work = Make(TermsOf(model), std::move(body));
    if (model == "new") work->set_operations(std::nullopt);
    EXPECT_TRUE(dispatcher_->Submit(work).ok());
    return work;
  }

  threading::Arena two_{2};
};

TEST_F(PreparationTest, OneTokenPreparesAndTheOthersServe) {
  std::vector<RecordedWork*> waiting;
  RecordedWork* first = nullptr;
  first = Submit("new", [&] {
    entered_.Notify();
    open_.WaitForNotification();
    for (RecordedWork* work : waiting) work->set_operations(1);
    dispatcher_->Prepared(first);
    for (RecordedWork* work : waiting) work->Wait();  // it need not end for them
  });
  entered_.WaitForNotification();
  for (int i = 0; i < 4; ++i) waiting.push_back(Submit("new"));
  RecordedWork* other = Submit("known");
  other->Wait();
  for (RecordedWork* work : waiting) EXPECT_FALSE(work->ran());
  EXPECT_TRUE(dispatcher_->Withdraw(waiting.back())) << "while it is parked";
  waiting.pop_back();
  open_.Notify();
  dispatcher_->WaitIdle();
  for (RecordedWork* work : waiting) EXPECT_TRUE(work->ran());
}

TEST_F(PreparationTest, WhereItFailsTheNextOneTries) {
  Submit("new", [&] {
    entered_.Notify();
    open_.WaitForNotification();
  });
  entered_.WaitForNotification();
  RecordedWork* second = Submit("new");
  RecordedWork* third = Submit("new");
  Submit("known")->Wait();
  EXPECT_FALSE(second->ran() || third->ran());
  open_.Notify();
  dispatcher_->WaitIdle();
  EXPECT_TRUE(second->ran() && third->ran());
}

TEST_F(DispatcherTest, IsStuckOnlyWhileSomethingWaitsAndNothingEnds) {
  Start(kNoExpress);
  EXPECT_FALSE(dispatcher_->Stuck(absl::Seconds(1)));
  Block(TermsOf("a"));
  clock_.Advance(absl::Seconds(2));
  EXPECT_FALSE(dispatcher_->Stuck(absl::Seconds(1))) << "nothing waits";
  ASSERT_TRUE(dispatcher_->Submit(Make(TermsOf("a"))).ok());
  EXPECT_TRUE(dispatcher_->Stuck(absl::Seconds(1)));
  EXPECT_EQ(dispatcher_->IdleSince(), absl::InfiniteFuture());
  open_.Notify();
  dispatcher_->WaitIdle();
  EXPECT_FALSE(dispatcher_->Stuck(absl::Seconds(1)));
  EXPECT_LE(dispatcher_->IdleSince(), clock_.Now());
}

}  // namespace
}  // namespace tilewire::service
