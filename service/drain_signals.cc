// SPDX-License-Identifier: Apache-2.0
#include "service/drain_signals.h"

#include <unistd.h>

#include <algorithm>
#include <utility>

#include "absl/time/clock.h"
#include "service/observe/background_log.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// How long the last line waits for a reader of the log.
constexpr absl::Duration kShortFlush = absl::Milliseconds(100);

[[noreturn]] void EndNow(int exit_code) {
  FlushLog(kShortFlush);
  _exit(exit_code);
}

}  // namespace

sigset_t AwaitedSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM}) {
    sigaddset(&signals, signal);
  }
  return signals;
}

void DrainSignals::Begin(absl::Duration longest, absl::AnyInvocable<void()> write_counts) {
  end_ = absl::Now() + longest;
  {
    const threading::MutexLock lock(&mutex_);
    write_counts_ = std::move(write_counts);
  }
  thread_ = std::make_unique<threading::BackgroundThread>("tw-signals", [this] { Wait(); });
}

DrainSignals::~DrainSignals() {
  if (thread_ == nullptr) return;
  {
    const threading::MutexLock lock(&mutex_);
    stopped_ = true;
  }
  kill(getpid(), SIGALRM);  // which ends the wait
}

void DrainSignals::ForgetCounts() {
  const threading::MutexLock lock(&mutex_);
  write_counts_ = nullptr;
}

void DrainSignals::WriteCounts() {
  const threading::MutexLock lock(&mutex_);
  if (write_counts_ != nullptr) write_counts_();
}

bool DrainSignals::stopped() {
  const threading::MutexLock lock(&mutex_);
  return stopped_;
}

void DrainSignals::Wait() {
  const sigset_t signals = AwaitedSignals();
  while (!stopped()) {
    const timespec left = absl::ToTimespec(std::max(end_ - absl::Now(), absl::ZeroDuration()));
    const int signal = sigtimedwait(&signals, nullptr, &left);
    switch (signal) {
      case SIGTERM:
      case SIGINT:
      case SIGQUIT:
        spdlog::warn("signal {} while draining: ending at once, without the answers that remain",
                     signal);
        EndNow(1);
      case SIGUSR1:
      case SIGUSR2:
        WriteCounts();
        break;
      default:
        if (absl::Now() < end_) break;
        spdlog::warn("the drain takes far longer than it may: ending without it");
        EndNow(0);
    }
  }
}

}  // namespace tilewire::service
