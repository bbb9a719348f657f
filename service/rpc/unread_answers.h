// SPDX-License-Identifier: Apache-2.0
//
// Answers that gRPC was given and that their clients have not read yet. One that waits for too long
// is ended, so that what it holds is given back:
//
//   after the timeout   in any case
//   after kGrace        while memory for requests is short (Admission::TakeShortage()): those that
//                       have waited longest first, as many as give back what is missing
#ifndef SERVICE_RPC_UNREAD_ANSWERS_H_
#define SERVICE_RPC_UNREAD_ANSWERS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/threading/mutex.h"
#include "service/schedule/admission.h"
#include "service/schedule/clock.h"

namespace tilewire::service {

// A call's part in the list of those that are written.
class UnreadAnswer {
 public:
  UnreadAnswer(const UnreadAnswer&) = delete;

  // Its client is told `why`, as far as it reads that. Called at most once, with a lock held that
  // Add() and Remove() take: quick.
  virtual void EndUnread(const absl::Status& why) = 0;

 protected:
  UnreadAnswer() = default;
  ~UnreadAnswer() = default;

 private:
  friend class UnreadAnswers;
  enum class State : uint8_t { kOutside, kListed, kEnded };

  // Guarded by the lock of its shard.
  State state_ = State::kOutside;
  UnreadAnswer *before_ = nullptr, *after_ = nullptr;
  absl::Time since_;
  int64_t bytes_ = 0;
};

// Thread-safe. Allocates nothing but where an answer is ended.
class UnreadAnswers {
 public:
  // The time in which a client that reads without delay has read a large answer.
  static constexpr absl::Duration kGrace = absl::Seconds(2);

  // The admission and the clock must outlive this object.
  UnreadAnswers(absl::Duration timeout, Admission* admission,
                const Clock* clock = nullptr)  // null: the real time
      : timeout_(timeout), admission_(admission), clock_(clock == nullptr ? &real_clock_ : clock) {}

  // The answer, for which `bytes` are charged, is about to be written.
  void Add(UnreadAnswer* answer, int64_t bytes);
  // The server's shutdown cancels from `end` on what has not been written by then.
  void SetShutdown(absl::Time end) { shutdown_ns_.store(absl::ToUnixNanos(end)); }

  // It has been written, or never will be. What was not added may be removed. Not OK, and why, if
  // the shutdown ended it.
  absl::Status Remove(UnreadAnswer* answer, bool written = true);

  // Ends those whose time is over. Returns when the next one's will be.
  absl::Time EndLate();

 private:
  // Answers are shared out, so that threads which answer at the same time seldom meet at a lock.
  struct Shard {
    threading::Mutex mutex;
    UnreadAnswer *first ABSL_GUARDED_BY(mutex) = nullptr, *last ABSL_GUARDED_BY(mutex) = nullptr;

    void Unlink(UnreadAnswer* answer) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex);
  };

  Shard& ShardOf(const UnreadAnswer* answer);
  // Ends the shard's first answer if it waits since `since` or longer. Returns its bytes.
  std::optional<int64_t> EndFirst(Shard* shard, absl::Time since, bool is_short);
  // Since when the first one of a shard, which waits longest there, does.
  static absl::Time WaitsSince(Shard* shard);
  absl::Status Reason(const UnreadAnswer& answer, bool is_short) const;
  void EndForMemory(int64_t missing, absl::Time since);

  const absl::Duration timeout_;
  Admission* const admission_;
  const Clock real_clock_;
  const Clock* const clock_;
  std::atomic<int64_t> shutdown_ns_{std::numeric_limits<int64_t>::max()};  // since the epoch
  std::atomic<int64_t> ended_bytes_{0};  // of those that were ended and not yet removed
  std::array<Shard, 16> shards_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNREAD_ANSWERS_H_
