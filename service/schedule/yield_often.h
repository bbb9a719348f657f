// SPDX-License-Identifier: Apache-2.0
//
// A thread that offers its core to others each quarter of a millisecond, whatever it computes: a
// load holds up no request for longer, even where both want the same core.
//
// Linux since 6.6 lets a thread of low priority run on until the next tick, 4 ms at 250 Hz,
// although a compute thread waits for the core. Where nothing else wants it, an offer costs a
// microsecond. A timer interrupts the thread with SIGURG, which is ignored where no thread asks for
// it; calls to the system that it interrupts go on (SA_RESTART) or end with EINTR.
//
// An offer may cost the thread more of its share than it has used of it. One that got its core late
// therefore keeps it for an eighth of what it waited: a machine that is never idle does not keep a
// load from its end.
#ifndef SERVICE_SCHEDULE_YIELD_OFTEN_H_
#define SERVICE_SCHEDULE_YIELD_OFTEN_H_

#include <signal.h>
#include <time.h>

#include <algorithm>
#include <cstdint>

#include "absl/functional/function_ref.h"

namespace tilewire::service {

// When a thread offers its core, in nanoseconds of its own time and of the clock. Needs no lock and
// no memory, so that a handler may ask it. Thread-compatible.
class OfferTimes {
 public:
  static constexpr int64_t kStretchNs = 250'000;
  static constexpr int64_t kLongestStretchNs = 4'000'000;
  static constexpr int kShareOfWait = 8;

  // The thread begins, or offers its core.
  void Begin(int64_t own_ns, int64_t now_ns) {
    own_ns_ = own_ns;
    now_ns_ = now_ns;
  }
  // It has waited this long for something else than its core.
  void LeaveOut(int64_t paused_ns) { now_ns_ += paused_ns; }
  bool IsDue(int64_t own_ns, int64_t now_ns) const {
    const int64_t ran = own_ns - own_ns_, waited = now_ns - now_ns_ - ran;
    return ran >= std::clamp(waited / kShareOfWait, kStretchNs, kLongestStretchNs);
  }

 private:
  int64_t own_ns_ = 0, now_ns_ = 0;  // before the last offer
};

// For the thread that makes it, which also destroys it; one at a time.
class YieldOften {
 public:
  YieldOften();
  ~YieldOften();
  YieldOften(const YieldOften&) = delete;

  // False if the system has no timer for it: the thread then keeps its core as others do.
  bool is_active() const { return is_active_; }
  // How often the thread has offered its core.
  int64_t offers() const;
  // Calls `wait`, whose time does not count as a wait for the core.
  void Pause(absl::FunctionRef<void()> wait) const;

 private:
  sigset_t blocked_before_;
  timer_t timer_ = {};
  bool is_active_ = false;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_YIELD_OFTEN_H_
