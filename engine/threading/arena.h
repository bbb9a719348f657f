// SPDX-License-Identifier: Apache-2.0
//
// The compute threads of a process, which are oneTBB's.
#ifndef ENGINE_THREADING_ARENA_H_
#define ENGINE_THREADING_ARENA_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace tilewire::threading {

class Workers;

// Thread-safe. Denormals are flushed (FTZ, DAZ) while a body runs; the thread's state comes back
// after it.
class Arena {
 public:
  static constexpr int kMaxThreads = 1024;

  explicit Arena(int threads);  // 1 to kMaxThreads
  ~Arena();                     // waits for every task that was enqueued
  Arena(const Arena&) = delete;

  int threads() const;

  // Runs body(0) ... body(count - 1), each once, in any order, on up to `max_threads` threads, the
  // caller's among them; returns when all have ended. May be nested. While it waits, a thread takes
  // only pieces of this very loop, never an enqueued task.
  void ParallelFor(int64_t count, int max_threads, absl::FunctionRef<void(int64_t)> body);

  // Runs `task` soon on one of the threads, in about the order of the calls; any thread may call.
  // Threads that only help with a loop leave it for the task when their piece ends; the loop's
  // caller computes what they leave.
  void Enqueue(absl::AnyInvocable<void()> task);

 private:
  std::atomic<int64_t> waiting_{0};  // tasks that no thread has begun
  std::unique_ptr<Workers> workers_;
};

// A right to use up to `threads()` threads of an arena: what a primitive gets to split its work
// over. A cheap value. Results may not depend on it: cut work at boundaries that depend on shapes
// only.
class Team {
 public:
  static Team Serial() { return Team(nullptr, 1); }
  explicit Team(Arena* arena) : Team(arena, arena->threads()) {}
  Team(Arena* arena, int threads) : arena_(arena), threads_(threads) {}

  int threads() const { return threads_; }

  // The same team for work that may end early: once `*stop` is true, pieces that have not begun are
  // left out and what the loops computed is worthless. `stop` outlives the team and stays true.
  Team Until(const std::atomic<bool>* stop) const {
    Team team = *this;
    team.stop_ = stop;
    return team;
  }

  // As Arena::ParallelFor; a plain loop (denormals flushed) when one thread is allowed.
  void ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body) const;

 private:
  Arena* arena_;
  int threads_;
  const std::atomic<bool>* stop_ = nullptr;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_ARENA_H_
