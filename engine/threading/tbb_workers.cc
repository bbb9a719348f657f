// SPDX-License-Identifier: Apache-2.0
#include <pthread.h>

#include <cstdint>
#include <memory>
#include <utility>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "engine/threading/arena.h"
#include "engine/threading/denormals.h"
#include "engine/threading/workers.h"
#include "tbb/global_control.h"
#include "tbb/parallel_for.h"
#include "tbb/partitioner.h"
#include "tbb/task_arena.h"

namespace tilewire::threading {
namespace {

// oneTBB grants a process one worker less than it has cores; an arena without a caller inside needs
// them all. Only the workers that arenas ask for are ever started.
void AllowWorkers() {
  static const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                           Arena::kMaxThreads + 1);
}

class TbbWorkers final : public Workers {
 public:
  // No slot is reserved for outsiders: one that calls Run takes a free slot, or waits for a thread
  // inside.
  explicit TbbWorkers(int threads) : arena_(threads, /*reserved_for_masters=*/0) { StartThreads(); }

  ~TbbWorkers() override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int64_t* pending) { return *pending == 0; }, &pending_));
  }

  int threads() const override { return arena_.max_concurrency(); }

  void Run(int runners, absl::FunctionRef<void(int)> body) override {
    arena_.execute([&] {
      tbb::this_task_arena::isolate([&] {
        tbb::parallel_for(
            0, runners, [&](int runner) { body(runner); }, tbb::simple_partitioner());
      });
    });
  }

  void Inside(absl::FunctionRef<void()> body) override {
    arena_.execute([&] { body(); });
  }

  void Enqueue(absl::AnyInvocable<void()> task, std::atomic<int64_t>* waiting) override {
    // oneTBB wants to copy what it is given.
    auto owned = std::make_unique<absl::AnyInvocable<void()>>(std::move(task));
    Count(1);
    try {
      arena_.enqueue([this, run = owned.get(), waiting] {
        waiting->fetch_sub(1, std::memory_order_relaxed);
        {
          const DenormalsFlushed flushed;
          (*run)();
          delete run;
        }
        Count(-1);
      });
    } catch (...) {
      Count(-1);
      throw;
    }
    (void)owned.release();  // the task deletes it
  }

 private:
  void Count(int pending) {
    absl::MutexLock lock(&mutex_);
    pending_ += pending;
  }

  // oneTBB starts a thread when work first needs it, from the thread that brings the work, whose
  // priority it inherits. The thread that makes the arena is the one to inherit from: each of these
  // tasks waits for the others, so that every thread is started, and by now.
  void StartThreads() {
    constexpr absl::Duration kLongest = absl::Seconds(5);  // where no more threads can be started
    const int all = threads();
    const auto started = std::make_shared<Started>();
    started->waiting = all;
    for (int i = 0; i < all; ++i) {
      Enqueue(
          [started, all] {
            pthread_setname_np(pthread_self(), kThreadName);
            absl::MutexLock lock(&started->mutex);
            ++started->threads;
            started->AwaitAll(all, kLongest);
          },
          &started->waiting);
    }
    absl::MutexLock lock(&started->mutex);
    started->AwaitAll(all, kLongest);
  }

  struct Started {
    void AwaitAll(int all, absl::Duration longest) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
      const auto there = [this, all]()
                             ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return threads >= all; };
      mutex.AwaitWithTimeout(absl::Condition(&there), longest);
    }
    std::atomic<int64_t> waiting = 0;
    absl::Mutex mutex;
    int threads ABSL_GUARDED_BY(mutex) = 0;
  };

  tbb::task_arena arena_;
  absl::Mutex mutex_;
  int64_t pending_ ABSL_GUARDED_BY(mutex_) = 0;  // tasks enqueued and not yet ended
};

}  // namespace

std::unique_ptr<Workers> StartWorkers(int threads) {
  AllowWorkers();
  return std::make_unique<TbbWorkers>(threads);
}

}  // namespace tilewire::threading
