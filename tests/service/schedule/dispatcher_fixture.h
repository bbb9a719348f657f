// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_SERVICE_SCHEDULE_DISPATCHER_FIXTURE_H_
#define TESTS_SERVICE_SCHEDULE_DISPATCHER_FIXTURE_H_

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "service/schedule/dispatcher.h"
#include "tests/service/schedule/recorded_work.h"

namespace tilewire::service {

// One compute thread, which `Block()` keeps busy.
class DispatcherTest : public ::testing::Test {
 protected:
  void Start(DispatcherOptions options = {}) {
    dispatcher_ = std::make_unique<Dispatcher>(&arena_, options, &clock_);
  }
  RecordedWork* Make(WorkTerms terms, std::function<void()> body = nullptr) {
    works_.push_back(std::make_unique<RecordedWork>(std::move(terms), std::move(body)));
    return works_.back().get();
  }
  // Returns when it runs; it ends when `open_` is notified.
  RecordedWork* Block(WorkTerms terms) {
    RecordedWork* work = Make(std::move(terms), [this] {
      entered_.Notify();
      open_.WaitForNotification();
    });
    EXPECT_TRUE(dispatcher_->Submit(work).ok());
    entered_.WaitForNotification();
    return work;
  }
  // So that the dispatcher knows how long it takes.
  void Learn(const std::string& model, absl::Duration time, int runs = 3) {
    Learn(TermsOf(model), time, runs);
  }
  void Learn(const WorkTerms& terms, absl::Duration time, int runs = 3) {
    for (int i = 0; i < runs; ++i) {
      RecordedWork* work = Make(terms, [this, time] { clock_.Advance(time); });
      ASSERT_TRUE(dispatcher_->Submit(work).ok());
      work->Wait();
      dispatcher_->WaitIdle();
    }
  }

  // Beside what Block() holds, work of the second terms waits while work of the first one, which
  // comes after it, runs.
  void ExpectOvertakes(const WorkTerms& beside, const WorkTerms& waiting) {
    RecordedWork *first = Make(waiting), *second = Make(beside);
    ASSERT_TRUE(dispatcher_->Submit(first).ok());
    ASSERT_TRUE(dispatcher_->Submit(second).ok());
    second->Wait();
    EXPECT_EQ(second->lane(), Lane::kExpress);
    EXPECT_FALSE(first->ran());
    open_.Notify();
    first->Wait();
    EXPECT_EQ(first->lane(), Lane::kArena);
  }

  static WorkTerms Varying() {
    WorkTerms terms = TermsOf("varying");
    terms.time_varies = true;
    return terms;
  }

  FakeClock clock_;
  threading::Notification entered_, open_;
  threading::Arena arena_{1};
  std::vector<std::unique_ptr<RecordedWork>> works_;
  std::unique_ptr<Dispatcher> dispatcher_;  // last: ends before what it uses
};

inline constexpr DispatcherOptions kNoExpress = {.express = false};

}  // namespace tilewire::service

#endif  // TESTS_SERVICE_SCHEDULE_DISPATCHER_FIXTURE_H_
