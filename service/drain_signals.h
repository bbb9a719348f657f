// SPDX-License-Identifier: Apache-2.0
//
// The signals that the server waits for, and what they do while it drains: the counts of requests
// are still written, and a second signal that ends the process does so at once.
#ifndef SERVICE_DRAIN_SIGNALS_H_
#define SERVICE_DRAIN_SIGNALS_H_

#include <signal.h>

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/time/time.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {

// SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2 and SIGALRM. Every thread blocks them.
sigset_t AwaitedSignals();

// Waits on a thread of its own from Begin() until it is destroyed.
//   SIGTERM, SIGINT, SIGQUIT   logs how the drain was cut short, ends the process: exit status 1
//   SIGUSR1, SIGUSR2           calls `write_counts`
//   SIGHUP                     nothing
class DrainSignals {
 public:
  DrainSignals() = default;
  ~DrainSignals();

  // After `longest` the process ends with exit status 0, drained or not.
  void Begin(absl::Duration longest, absl::AnyInvocable<void()> write_counts);
  // `write_counts` is not called any more.
  void ForgetCounts() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  void WriteCounts() ABSL_LOCKS_EXCLUDED(mutex_);
  bool stopped() ABSL_LOCKS_EXCLUDED(mutex_);

  absl::Time end_;
  threading::Mutex mutex_;
  absl::AnyInvocable<void()> write_counts_ ABSL_GUARDED_BY(mutex_);
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  std::unique_ptr<threading::BackgroundThread> thread_;
};

}  // namespace tilewire::service

#endif  // SERVICE_DRAIN_SIGNALS_H_
