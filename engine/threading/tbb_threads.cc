// SPDX-License-Identifier: Apache-2.0
//
// Each thread is one of a task arena, which runs one task from beginning to end.
#include <deque>
#include <memory>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "engine/threading/arena.h"
#include "engine/threading/threads.h"
#include "tbb/global_control.h"
#include "tbb/task_arena.h"

namespace tilewire::threading {
namespace {

// oneTBB grants a process one worker less than it has cores; an arena without a caller inside needs
// them all. Only the workers that arenas ask for are ever started.
void AllowWorkers() {
  static const tbb::global_control control(tbb::global_control::max_allowed_parallelism,
                                           Arena::kMaxThreads + 1);
}

class TbbThreads final : public Threads {
 public:
  explicit TbbThreads(int most) : arena_(most, /*reserved_for_masters=*/0) {}

  // oneTBB starts a thread when work first needs it, from the thread that brings the work.
  void Start(absl::AnyInvocable<void()> body) override {
    bodies_.push_back(std::move(body));
    Count(1);
    try {
      arena_.enqueue([this, run = &bodies_.back()] {
        (*run)();
        Count(-1);
      });
    } catch (...) {
      Count(-1);
      throw;
    }
  }

  void Join() override {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](int* running) { return *running == 0; }, &running_));
  }

 private:
  void Count(int more) {
    absl::MutexLock lock(&mutex_);
    running_ += more;
  }

  tbb::task_arena arena_;
  std::deque<absl::AnyInvocable<void()>> bodies_;  // oneTBB wants to copy what it is given
  absl::Mutex mutex_;
  int running_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace

std::unique_ptr<Threads> MakeThreads(int most) {
  AllowWorkers();
  return std::make_unique<TbbThreads>(most);
}

}  // namespace tilewire::threading
