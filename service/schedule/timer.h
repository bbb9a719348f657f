// SPDX-License-Identifier: Apache-2.0
//
// A thread that does what is due: calls `tick`, which returns when it wants to be called again.
#ifndef SERVICE_SCHEDULE_TIMER_H_
#define SERVICE_SCHEDULE_TIMER_H_

#include <algorithm>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {

// Thread-safe. `tick` is called at least every `longest_pause`, and never by two threads at once.
class Timer {
 public:
  Timer(absl::AnyInvocable<absl::Time()> tick, absl::Duration longest_pause)
      : tick_(std::move(tick)),
        longest_pause_(longest_pause),
        thread_("tw-timer", [this] { Run(); }) {}
  ~Timer() {
    threading::MutexLock lock(&mutex_);
    stopping_ = true;
  }

  // Calls `tick` by `time`.
  void CallBy(absl::Time time) ABSL_LOCKS_EXCLUDED(mutex_) {
    threading::MutexLock lock(&mutex_);
    if (time < next_) earlier_ = true;
  }

 private:
  void Run() ABSL_LOCKS_EXCLUDED(mutex_) {
    const auto woken = [this]()
                           ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || earlier_; };
    while (true) {
      {
        threading::MutexLock lock(&mutex_);
        next_ = absl::InfiniteFuture();  // what is asked for during the tick may be too late for it
      }
      const absl::Time wanted = tick_();
      threading::MutexLock lock(&mutex_);
      const absl::Time now = SteadyNow();
      next_ = std::min(wanted, now + longest_pause_);
      mutex_.AwaitWithTimeout(absl::Condition(&woken), next_ - now);
      if (stopping_) return;
      earlier_ = false;
    }
  }

  absl::AnyInvocable<absl::Time()> tick_;
  const absl::Duration longest_pause_;
  threading::Mutex mutex_;
  absl::Time next_ ABSL_GUARDED_BY(mutex_);
  bool earlier_ ABSL_GUARDED_BY(mutex_) = false;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  threading::BackgroundThread thread_;  // last: it stops before what it uses goes
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_TIMER_H_
