// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/yield_often.h"

#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>

namespace tilewire::service {
namespace {

constexpr int kSignal = SIGURG;

// Read by the handler; while it is not asked it leaves the rest alone.
struct Offers {
  std::atomic<bool> is_asked = false;
  int64_t count = 0;
  OfferTimes times;
};
constinit thread_local Offers offers_of_thread;

int64_t Nanoseconds(clockid_t clock) {
  timespec time = {};
  clock_gettime(clock, &time);
  return int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}
int64_t OwnTime() { return Nanoseconds(CLOCK_THREAD_CPUTIME_ID); }
int64_t Now() { return Nanoseconds(CLOCK_MONOTONIC); }

// Calls only what is safe in a handler.
void OfferCore(int /*signal*/) {
  const int error = errno;
  Offers& offers = offers_of_thread;
  const int64_t own = OwnTime(), now = Now();
  if (offers.is_asked.load() && offers.times.IsDue(own, now)) {
    ++offers.count;
    offers.times.Begin(own, now);  // what the offer makes it wait counts for the next stretch
    sched_yield();
  }
  errno = error;
}

bool Handle() {
  struct sigaction action = {};
  action.sa_handler = OfferCore;
  action.sa_flags = SA_RESTART;
  return sigaction(kSignal, &action, nullptr) == 0;
}

bool StartTimer(timer_t* timer) {
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = kSignal;
  event._sigev_un._tid = static_cast<pid_t>(syscall(SYS_gettid));
  if (timer_create(CLOCK_MONOTONIC, &event, timer) != 0) return false;
  const timespec stretch = {.tv_sec = 0, .tv_nsec = OfferTimes::kStretchNs};
  const itimerspec times = {.it_interval = stretch, .it_value = stretch};
  if (timer_settime(*timer, 0, &times, nullptr) == 0) return true;
  timer_delete(*timer);
  return false;
}

}  // namespace

YieldOften::YieldOften() {
  Offers& offers = offers_of_thread;
  if (offers.is_asked.load()) std::abort();  // a second one on this thread
  offers.count = 0;
  offers.times.Begin(OwnTime(), Now());
  offers.is_asked.store(true);
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, kSignal);
  pthread_sigmask(SIG_UNBLOCK, &signals, &blocked_before_);
  static const bool is_handled = Handle();
  is_active_ = is_handled && StartTimer(&timer_);
}

YieldOften::~YieldOften() {
  if (is_active_) timer_delete(timer_);
  offers_of_thread.is_asked.store(false);
  pthread_sigmask(SIG_SETMASK, &blocked_before_, nullptr);
}

void YieldOften::Pause(absl::FunctionRef<void()> wait) const {
  Offers& offers = offers_of_thread;
  offers.is_asked.store(false);
  const int64_t begin = Now();
  wait();
  offers.times.LeaveOut(Now() - begin);
  offers.is_asked.store(true);
}

int64_t YieldOften::offers() const { return offers_of_thread.count; }

}  // namespace tilewire::service
