// SPDX-License-Identifier: Apache-2.0
//
// A loop of `count` pieces is cut into one contiguous range per runner. A runner takes pieces from
// the front of its own range and then from the others', so that neighbours stay on one core and no
// thread idles while pieces are left. A runner that no thread has joined costs one failed increment
// per range.
#include "engine/threading/arena.h"

#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "engine/base/check.h"
#include "engine/threading/core_time.h"
#include "engine/threading/denormals.h"
#include "engine/threading/stop.h"
#include "engine/threading/urgent_work.h"
#include "engine/threading/workers.h"

namespace tilewire::threading {
namespace {

// Pieces [next, end) that no thread has taken; alone on its cache line.
struct alignas(64) Range {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

// The flag of the team whose body this thread runs; null if it cannot stop.
thread_local const std::atomic<bool>* current_stop = nullptr;
// The count of the arena whose loop this thread runs; null outside loops that have several runners.
thread_local const std::atomic<int64_t>* current_waiting = nullptr;

// Sets one of these two while it lives; loops nest.
template <typename T>
class Scope {
 public:
  Scope(const T** current, const T* value)
      : current_(current), outer_(std::exchange(*current, value)) {}
  ~Scope() { *current_ = outer_; }
  Scope(const Scope&) = delete;

 private:
  const T** const current_;
  const T* const outer_;
};

// Set by a body, for the loop that called it: no piece needs to be run any more. A stopped loop may
// have more pieces than could be left out one by one.
thread_local bool loop_is_over = false;

using Ranges = absl::InlinedVector<Range, 8>;

// How long a thread computes at a stretch beside urgent work: a tenth of a millisecond or two.
constexpr uint64_t kStretchCycles = 500'000;

// Urgent work is to get a core from a thread that computes. The system does not see to that alone:
// Linux since 6.6 often lets a thread run on until the next tick, up to four milliseconds, because
// what has just woken had its fair share a moment ago. So the thread offers its core itself; where
// nothing else wants it, that costs less than a microsecond.
void GiveWay() {
  if (!UrgentWork::IsUnderWayElsewhere()) return;
  thread_local uint64_t since = 0;
  if (__rdtsc() - since < kStretchCycles) return;
  sched_yield();
  since = __rdtsc();
}

// Runner 0 takes pieces until none are left; the others leave when tasks wait for a thread.
void RunFrom(int first, Ranges& ranges, const std::atomic<int64_t>& waiting,
             absl::FunctionRef<void(int64_t)> body) {
  const DenormalsFlushed flushed;
  const Scope<std::atomic<int64_t>> scope(&current_waiting, &waiting);
  const int count = static_cast<int>(ranges.size());
  for (int i = 0; i < count; ++i) {
    Range& range = ranges[(first + i) % count];
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      if (first != 0 && waiting.load(std::memory_order_relaxed) > 0) return;
      const int64_t piece = range.next.fetch_add(1, std::memory_order_relaxed);
      if (piece < range.end) body(piece);
      GiveWay();
      if (std::exchange(loop_is_over, false)) return;
    }
  }
}

void RunSerially(int64_t count, absl::FunctionRef<void(int64_t)> body) {
  const DenormalsFlushed flushed;
  for (int64_t i = 0; i < count; ++i) {
    body(i);
    GiveWay();
    if (std::exchange(loop_is_over, false)) return;
  }
}

}  // namespace

// All that takes long asks this between its steps, which makes it a place to give way, too.
bool Stopped() {
  GiveWay();
  return current_stop != nullptr && current_stop->load(std::memory_order_relaxed);
}

bool TasksWait() {
  return current_waiting != nullptr && current_waiting->load(std::memory_order_relaxed) > 0;
}

Arena::Arena(int threads) {
  TILEWIRE_CHECK(threads >= 1 && threads <= kMaxThreads, "an arena has 1 to 1024 threads");
  workers_ = StartWorkers(threads);
}

Arena::~Arena() = default;

int Arena::threads() const { return workers_->threads(); }

void Arena::ParallelFor(int64_t count, int max_threads, absl::FunctionRef<void(int64_t)> body) {
  const int64_t runners = std::min<int64_t>({count, max_threads, threads()});
  if (runners <= 1) return RunSerially(count, body);
  Ranges ranges(runners);
  for (int64_t i = 0; i < runners; ++i) {
    ranges[i].next.store(count * i / runners, std::memory_order_relaxed);
    ranges[i].end = count * (i + 1) / runners;
  }
  CoreTime* const work = CoreTime::OfThread();
  workers_->Run(static_cast<int>(runners), [&](int runner) {
    const Helping helping(work);
    RunFrom(runner, ranges, waiting_, body);
  });
}

void Arena::Enqueue(absl::AnyInvocable<void()> task) {
  waiting_.fetch_add(1, std::memory_order_relaxed);
  try {
    workers_->Enqueue(std::move(task), &waiting_);
  } catch (...) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    throw;
  }
}

void Team::ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body) const {
  const auto unless_stopped = [this, body](int64_t piece) {
    if (stop_->load(std::memory_order_relaxed)) {
      loop_is_over = true;
      return;
    }
    const Scope<std::atomic<bool>> scope(&current_stop, stop_);
    body(piece);
  };
  const absl::FunctionRef<void(int64_t)> work = stop_ == nullptr ? body : unless_stopped;
  if (threads_ <= 1 || arena_ == nullptr) return RunSerially(count, work);
  arena_->ParallelFor(count, threads_, work);
}

}  // namespace tilewire::threading
