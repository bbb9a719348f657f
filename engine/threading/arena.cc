// SPDX-License-Identifier: Apache-2.0
//
// A loop of `count` pieces is cut into one contiguous range a runner. A runner takes pieces from
// the front of its own range and then helps with the others', so that neighbours stay on one core
// and nobody idles while pieces are left; a runner that no thread has come for costs one failed
// increment a range.
#include "engine/threading/arena.h"

#include <xmmintrin.h>

#include <algorithm>
#include <atomic>
#include <utility>

#include "absl/container/inlined_vector.h"
#include "absl/synchronization/mutex.h"
#include "engine/base/check.h"
#include "tbb/global_control.h"
#include "tbb/parallel_for.h"
#include "tbb/partitioner.h"
#include "tbb/task_arena.h"

namespace tilewire::threading {
namespace {

constexpr int kMaxThreads = 1024;

// Flushes denormals to zero on this thread as long as it lives.
class DenormalsFlushed {
 public:
  DenormalsFlushed() : saved_(_mm_getcsr()) { _mm_setcsr(saved_ | kFtz | kDaz); }
  ~DenormalsFlushed() { _mm_setcsr(saved_); }
  DenormalsFlushed(const DenormalsFlushed&) = delete;

 private:
  static constexpr unsigned kFtz = 0x8000;
  static constexpr unsigned kDaz = 0x0040;
  const unsigned saved_;
};

// Pieces [next, end) that nobody has taken; alone on its cache line.
struct alignas(64) Range {
  std::atomic<int64_t> next{0};
  int64_t end = 0;
};

using Ranges = absl::InlinedVector<Range, 8>;

void RunFrom(int first, Ranges& ranges, absl::FunctionRef<void(int64_t)> body) {
  const DenormalsFlushed flushed;
  const int count = static_cast<int>(ranges.size());
  for (int i = 0; i < count; ++i) {
    Range& range = ranges[(first + i) % count];
    while (range.next.load(std::memory_order_relaxed) < range.end) {
      const int64_t piece = range.next.fetch_add(1, std::memory_order_relaxed);
      if (piece < range.end) body(piece);
    }
  }
}

void RunSerially(int64_t count, absl::FunctionRef<void(int64_t)> body) {
  const DenormalsFlushed flushed;
  for (int64_t i = 0; i < count; ++i) body(i);
}

// oneTBB grants a process one worker less than it has cores; an arena without a caller inside needs
// them all. Only the workers that arenas ask for are ever started.
void AllowWorkers() {
  static const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                           kMaxThreads + 1);
}

}  // namespace

class Arena::Tbb {
 public:
  // No slot is reserved for outsiders: one that calls ParallelFor takes a free slot, or waits for a
  // thread inside.
  explicit Tbb(int threads) : arena_(threads, /*reserved_for_masters=*/0) {}

  ~Tbb() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int64_t* pending) { return *pending == 0; }, &pending_));
  }

  int threads() const { return arena_.max_concurrency(); }

  void Run(Ranges& ranges, absl::FunctionRef<void(int64_t)> body) {
    const int runners = static_cast<int>(ranges.size());
    arena_.execute([&] {
      tbb::this_task_arena::isolate([&] {
        tbb::parallel_for(
            0, runners, [&](int runner) { RunFrom(runner, ranges, body); },
            tbb::simple_partitioner());
      });
    });
  }

  void Enqueue(absl::AnyInvocable<void()> task) {
    {
      absl::MutexLock lock(&mutex_);
      ++pending_;
    }
    // oneTBB wants to copy what it is given.
    auto* owned = new absl::AnyInvocable<void()>(std::move(task));
    arena_.enqueue([this, owned] {
      {
        const DenormalsFlushed flushed;
        (*owned)();
        delete owned;
      }
      absl::MutexLock lock(&mutex_);
      --pending_;
    });
  }

 private:
  tbb::task_arena arena_;
  absl::Mutex mutex_;
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks enqueued and not yet ended
};

Arena::Arena(int threads) {
  TILEWIRE_CHECK(threads >= 1 && threads <= kMaxThreads, "an arena has 1 to 1024 threads");
  AllowWorkers();
  tbb_ = std::make_unique<Tbb>(threads);
}

Arena::~Arena() = default;

int Arena::threads() const { return tbb_->threads(); }

void Arena::ParallelFor(int64_t count, int max_threads, absl::FunctionRef<void(int64_t)> body) {
  const int64_t runners = std::min<int64_t>({count, max_threads, threads()});
  if (runners <= 1) return RunSerially(count, body);
  Ranges ranges(runners);
  for (int64_t i = 0; i < runners; ++i) {
    ranges[i].next.store(count * i / runners, std::memory_order_relaxed);
    ranges[i].end = count * (i + 1) / runners;
  }
  tbb_->Run(ranges, body);
}

void Arena::Enqueue(absl::AnyInvocable<void()> task) { tbb_->Enqueue(std::move(task)); }

void Team::ParallelFor(int64_t count, absl::FunctionRef<void(int64_t)> body) const {
  if (threads_ <= 1 || arena_ == nullptr) return RunSerially(count, body);
  arena_->ParallelFor(count, threads_, body);
}

}  // namespace tilewire::threading
