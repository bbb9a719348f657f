// SPDX-License-Identifier: Apache-2.0
//
// One piece of work that waits for the compute threads, and what the scheduler has to know of it.
#ifndef SERVICE_SCHEDULE_WORK_H_
#define SERVICE_SCHEDULE_WORK_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "service/observe/refusal.h"

namespace tilewire::service {

// Foreground work is a client's request. Background work (a model's load, the timed runs of a plan)
// runs one piece at a time, and begins only while no foreground work waits.
enum class WorkClass : uint8_t { kForeground, kBackground };

class Ticket;  // service/schedule/admission.h

struct WorkTerms {
  std::string model;         // compute time is shared evenly between these
  uint64_t cost_key = 0;     // a hash: work with the same key takes about the same time; 0: unknown
  bool time_varies = false;  // even so: the time of a run says nothing of the next one
  int priority = 0;          // higher first, within a model
  absl::Time deadline = absl::InfiniteFuture();
  const char* limit = nullptr;  // in words, where `deadline` may be the server's own limit
  WorkClass work_class = WorkClass::kForeground;
  Ticket* ticket = nullptr;       // of the bytes that it holds; null: they are not counted
  bool may_run_serially = false;  // Run(kExpress) computes on the calling thread only
};

// Where Run() is called.
enum class Lane : uint8_t {
  kArena,    // on one of the arena's threads; loops may spread over the others
  kExpress,  // on one thread beside the arena
};

// Owned by the caller, alive until Run() or End() has been called or Withdraw() has returned true.
class Work {
 public:
  explicit Work(WorkTerms terms = {}) : terms_(std::move(terms)) {}
  virtual ~Work() = default;
  Work(const Work&) = delete;

  // Exactly one of these two is called, once, without any lock held.
  virtual void Run(Lane lane) = 0;
  virtual void End(const absl::Status& status) = 0;

  // The multiplications and additions of a run, 0 if they are not known; nullopt while something is
  // missing that the first run makes and that other work with its cost key shares, such as a plan.
  // Called with a lock held: quick.
  virtual std::optional<int64_t> Operations() const { return 0; }

  const WorkTerms& terms() const { return terms_; }
  // Why it was refused or ended without being run; kNone for other reasons than those.
  RequestRefusal refusal() const { return refusal_; }

  // Once Run() or End() is called: whether it waited for what other work made, and whether it makes
  // what others need.
  bool waited_for_another() const { return was_parked_; }
  bool makes_for_others() const { return makes_; }

 protected:
  // Before Submit().
  void set_terms(WorkTerms terms) { terms_ = std::move(terms); }
  void set_refusal(RequestRefusal refusal) { refusal_ = refusal; }

 private:
  friend class FairQueue;
  friend class Dispatcher;
  WorkTerms terms_;
  RequestRefusal refusal_ = RequestRefusal::kNone;
  bool prepares_ = false;  // for others, too; touched by the thread that runs it
  bool makes_ = false;     // it was so when it started
  // Guarded by the lock of the queue's owner.
  bool waiting_ = false, parked_ = false, was_parked_ = false;
  int64_t sequence_ = 0;
  absl::Duration expected_;
  absl::Time expires_;
};

}  // namespace tilewire::service

#endif  // SERVICE_SCHEDULE_WORK_H_
