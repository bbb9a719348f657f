// SPDX-License-Identifier: Apache-2.0
//
// Admission: which requests run, and where. An admitted request is one task of the engine's arena,
// so that gRPC's threads never compute, many requests run one per core, and a lone one spreads over
// the idle cores. Thread-safe; no lock is held while a request runs.
#ifndef SERVICE_SCHEDULE_SCHEDULER_H_
#define SERVICE_SCHEDULE_SCHEDULER_H_

#include <atomic>
#include <cstdint>

#include "absl/base/thread_annotations.h"
#include "absl/functional/any_invocable.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/threading/arena.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {

class Scheduler {
 public:
  // At most `max_queue` requests wait beyond those that run. The arena must outlive this object.
  Scheduler(threading::Arena* arena, int max_queue);
  // Waits for what was admitted.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;

  // Runs `work` once, soon, on a thread of the arena.
  //   kUnavailable  the queue is full, or the server drains; `work` is destroyed without being run
  absl::Status Submit(absl::AnyInvocable<void()> work) ABSL_LOCKS_EXCLUDED(mutex_);

  // From now on nothing is admitted.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);
  bool draining() const ABSL_LOCKS_EXCLUDED(mutex_);
  // Returns when nothing that was admitted is left.
  void WaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // When a refused client may try again: about the time until half of the queue has run.
  absl::Duration Pushback() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  void Ended(absl::Duration run) ABSL_LOCKS_EXCLUDED(mutex_);

  threading::Arena* const arena_;
  const int64_t limit_;
  mutable threading::Mutex mutex_;
  int64_t admitted_ ABSL_GUARDED_BY(mutex_) = 0;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration mean_run_ ABSL_GUARDED_BY(mutex_);  // of the last few requests
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_SCHEDULER_H_
