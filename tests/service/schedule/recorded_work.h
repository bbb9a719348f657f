// SPDX-License-Identifier: Apache-2.0
#ifndef TESTS_SERVICE_SCHEDULE_RECORDED_WORK_H_
#define TESTS_SERVICE_SCHEDULE_RECORDED_WORK_H_

#include <atomic>
#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/hash/hash.h"
#include "engine/threading/mutex.h"
#include "service/schedule/clock.h"
#include "service/schedule/work.h"

namespace tilewire::service {

// A time that only the test moves.
class FakeClock final : public Clock {
 public:
  absl::Time Now() const override { return absl::FromUnixMicros(micros_.load()); }
  void Advance(absl::Duration time) { micros_.fetch_add(absl::ToInt64Microseconds(time)); }

 private:
  std::atomic<int64_t> micros_{1'000'000'000};
};

// Work that tells what became of it.
class RecordedWork final : public Work {
 public:
  explicit RecordedWork(WorkTerms terms, std::function<void()> body = nullptr)
      : Work(std::move(terms)), body_(std::move(body)) {}

  void Run(Lane lane) override {
    lane_ = lane;
    if (body_) body_();
    ran_.store(true);
    done_.Notify();
  }
  void End(const absl::Status& status) override {
    status_ = status;
    done_.Notify();
  }

  // As if what it needs were made by its first run.
  void set_operations(std::optional<int64_t> operations) { operations_ = operations.value_or(-1); }
  std::optional<int64_t> Operations() const override {
    const int64_t operations = operations_.load();
    return operations < 0 ? std::nullopt : std::optional(operations);
  }

  void Wait() { done_.WaitForNotification(); }
  bool ran() const { return ran_.load(); }
  Lane lane() const { return lane_; }
  const absl::Status& status() const { return status_; }  // of End(); after Wait()

 private:
  const std::function<void()> body_;
  std::atomic<int64_t> operations_{0};  // -1: nullopt
  std::atomic<bool> ran_{false};
  Lane lane_ = Lane::kArena;
  absl::Status status_;
  threading::Notification done_;
};

inline WorkTerms TermsOf(const std::string& model) {
  return {.model = model, .cost_key = absl::HashOf(model), .may_run_serially = true};
}

}  // namespace tilewire::service

#endif  // TESTS_SERVICE_SCHEDULE_RECORDED_WORK_H_
