// SPDX-License-Identifier: Apache-2.0
//
// Runs work on the engine's arena: at most as many pieces at once as the arena has threads, each on
// a token that takes the next piece from the queue when its own has ended, so that many requests
// run one per core, and a lone one spreads over the idle cores. gRPC's threads compute nothing but
// the shortest work of a single caller.
//
//   admission    refused at the door: above the bounds on what waits, or what cannot be answered in
//                its time by the measured cost of what is ahead of it
//   order        FairQueue
//   preparation  where the first run makes what others share (a plan), one token makes it, and the
//                others that need it leave their tokens to other work
//   background   one piece at a time, begun only while nothing else waits
//   at once      where pieces come one at a time, one that is over sooner than another thread wakes
//                up runs on the thread that submits it, as on a token
//   express      while every token is busy for longer than it takes, short work runs on a thread of
//                its own and shares the cores with them as the operating system decides
//   untimed      while every token is busy for long, work of unknown time runs on another such
//                thread: else what has never run would wait for the longest work there is
//
// Thread-safe; no lock is held while work runs or ends.
#ifndef SERVICE_SCHEDULE_DISPATCHER_H_
#define SERVICE_SCHEDULE_DISPATCHER_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/threading/arena.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/schedule/clock.h"
#include "service/schedule/cost.h"
#include "service/schedule/dispatcher_load.h"
#include "service/schedule/fair_queue.h"
#include "service/schedule/work.h"

namespace tilewire::service {

struct DispatcherOptions {
  int max_waiting = 256;            // pieces of work, beyond those that run
  int max_waiting_per_model = 192;  // so that one model leaves room for the others
  absl::Duration max_wait = absl::Seconds(10);
  bool express = true;
};

class Dispatcher {
 public:
  // The arena and the clock must outlive this object.
  Dispatcher(threading::Arena* arena, const DispatcherOptions& options,
             const Clock* clock = nullptr);  // null: the real time
  ~Dispatcher();                             // waits for all that was submitted
  Dispatcher(const Dispatcher&) = delete;

  // Once OK, exactly one of Run() and End() will be called, unless Withdraw() takes it back; Run()
  // perhaps before Submit() returns. Neither will be if it throws, for want of memory.
  //   kUnavailable       a bound on what waits; too much work ahead of it for its deadline
  //   kDeadlineExceeded  its deadline has passed
  absl::Status Submit(Work* work) ABSL_LOCKS_EXCLUDED(mutex_);

  // True if the work was waiting: it no longer is, and neither Run() nor End() will be called.
  bool Withdraw(Work* work) ABSL_LOCKS_EXCLUDED(mutex_);

  // When a refused client may try again: the predicted wait, between 5 ms and 5 s.
  absl::Duration RetryAfter(const std::string& model) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Starts what could not be started for want of memory. Ends what has waited for too long with
  // kDeadlineExceeded or, where only max_wait has passed, kUnavailable. Returns when to call it
  // again at the latest.
  absl::Time EndExpired() ABSL_LOCKS_EXCLUDED(mutex_);

  // From within Run(): what other work with its cost key waited for is there.
  void Prepared(Work* work) ABSL_LOCKS_EXCLUDED(mutex_);

  // For background work, between its steps: runs the foreground work that waits, here.
  void RunWaiting() ABSL_LOCKS_EXCLUDED(mutex_);

  // Background work on the caller's thread (see BackgroundTurn). The first two wait while requests
  // wait, for `longest` at most; the first also while other background work runs.
  void BeginBackground(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitNothingWaits(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mutex_);
  void EndBackground() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits while anything waits or runs, for `longest` at most.
  void AwaitIdle(absl::Duration longest) ABSL_LOCKS_EXCLUDED(mutex_);
  // Whether work with this cost key has run.
  bool HasRun(uint64_t cost_key) const ABSL_LOCKS_EXCLUDED(mutex_);
  bool TurnAwaited() const ABSL_LOCKS_EXCLUDED(mutex_);  // BeginBackground() waits for its turn

  int threads() const { return threads_; }
  // Something waits, and nothing has ended for `limit`.
  bool Stuck(absl::Duration limit) const ABSL_LOCKS_EXCLUDED(mutex_);
  // Since when nothing runs or waits; InfiniteFuture while something does.
  absl::Time IdleSince() const ABSL_LOCKS_EXCLUDED(mutex_);
  void WaitIdle() ABSL_LOCKS_EXCLUDED(mutex_);

  // Takes the lock for as long as it looks at what waits: not for each request.
  DispatcherLoad Load() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  struct Running {
    std::string model;
    uint64_t cost_key;
    absl::Time start;
    absl::Duration expected, charged;  // as measured; to its model, when it was taken
    int64_t operations;                // 0: not known when it was taken
    bool background, time_varies;
    bool beside = false;  // the tokens
  };
  using RunningPlace = std::list<Running>::iterator;
  struct Taken {
    Work* work = nullptr;  // null: nothing to do
    RunningPlace place;
  };

  // Marks the work with the reason.
  absl::Status Refuse(Work* work, absl::Time now, absl::Duration expected) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status RefuseLate(const WorkTerms& terms, absl::Time now, absl::Duration expected) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool Idle() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return running_.empty() && queue_.size() == 0 && background_.empty();
  }
  absl::Duration PredictedWait(const std::string& model, int priority) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // The measured time, or what its operations tell.
  absl::Duration ExpectedTime(const Work& work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  bool AllBusy() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return tokens_ >= threads_; }
  absl::Duration MeasuredTime(const WorkTerms& terms) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // When the first token will be free, as far as is known.
  absl::Duration BusyFor(absl::Time now) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  // For work that waits alone, with a token.
  bool RunsAtOnce(const Work& work, absl::Duration measured) const
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void RunHere(const Taken& taken) ABSL_LOCKS_EXCLUDED(mutex_);
  void RunToken() ABSL_LOCKS_EXCLUDED(mutex_);
  void RunBeside(bool untimed) ABSL_LOCKS_EXCLUDED(mutex_);
  bool WaitsForAnother(const Work& work) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // FairQueue::Pop() or PopUntimed(), except that work that waits for another is parked and passed
  // over.
  Work* PopReady(Work* (FairQueue::*pop)()) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Returns how many new tokens to start.
  int EndPreparation(uint64_t cost_key) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Starts tokens in the arena. A token that there is no memory for is given up at once;
  // EndExpired() starts one where none is left.
  void StartTokens(int count) ABSL_LOCKS_EXCLUDED(mutex_);
  bool LacksToken() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Taken Take(bool with_background) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // For the threads beside the tokens.
  Taken TakeShort() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Taken TakeUntimed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Taken Start(Work* work) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // After its Run(). Returns how many new tokens to start.
  int EndRun(const Taken& taken, Lane lane) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Moves what has waited for too long to `expired`; returns when the next one will have.
  absl::Time TakeExpired(absl::Time now, std::vector<Work*>* expired)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void EndTooLate(const std::vector<Work*>& expired, absl::Time now) const
      ABSL_LOCKS_EXCLUDED(mutex_);

  threading::Arena* const arena_;
  const DispatcherOptions options_;
  const Clock real_clock_;
  const Clock* const clock_;
  const int threads_;
  mutable threading::Mutex mutex_;
  FairQueue queue_ ABSL_GUARDED_BY(mutex_);
  std::deque<Work*> background_ ABSL_GUARDED_BY(mutex_);
  CostTable costs_ ABSL_GUARDED_BY(mutex_);
  std::list<Running> running_ ABSL_GUARDED_BY(mutex_);
  std::list<Running> spare_ ABSL_GUARDED_BY(mutex_);  // nodes of runs that have ended
  // The run that prepares what the others with its cost key wait for.
  absl::flat_hash_map<uint64_t, const Running*> preparing_ ABSL_GUARDED_BY(mutex_);
  int tokens_ ABSL_GUARDED_BY(mutex_) = 0;
  int came_alone_ ABSL_GUARDED_BY(mutex_) = 0;  // see kOneAtATime
  bool background_runs_ ABSL_GUARDED_BY(mutex_) = false;
  int turns_waited_for_ ABSL_GUARDED_BY(mutex_) = 0;  // they run before other background work
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Time last_end_ ABSL_GUARDED_BY(mutex_);
  std::unique_ptr<threading::BackgroundThread> express_, untimed_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_DISPATCHER_H_
