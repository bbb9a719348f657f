// SPDX-License-Identifier: Apache-2.0
//
// Threads that look for work on one board under one lock: tasks first, for which helpers leave
// their loops, then loops that want more runners. The caller of Run() is its first runner. oneTBB
// supplies the threads (threads.h); how they wait is ours:
//
// A thread that runs out of work looks at the board for a while before it sleeps, since the next
// loop of a request comes within microseconds; no more threads look than there are cores. A caller
// that waits for helpers looks for a while, too, and then sleeps: its core is free for a helper
// that has lost its own. They yield to urgent work alone: beside a busy process that gives the
// core away for milliseconds. Sleepers are woken a few at a time: by a caller, and by each
// thread that comes to help.
//
// A helper that lost its core in the middle of a piece makes its loop wait. Where cores are shared
// that happens again and again, so a helper that was late rests, longer each time, and loops go on
// without it meanwhile. It takes tasks as before.
#include <immintrin.h>
#include <pthread.h>
#include <sched.h>
#include <x86intrin.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "engine/cpu/cores.h"
#include "engine/threading/denormals.h"
#include "engine/threading/threads.h"
#include "engine/threading/urgent_work.h"
#include "engine/threading/workers.h"

namespace tilewire::threading {
namespace {

using Ticks = int64_t;  // two or three in a nanosecond, the same on all cores

constexpr Ticks kLookForWork = 250'000;     // before a thread sleeps
constexpr Ticks kLookForHelpers = 100'000;  // before a loop's caller does
constexpr Ticks kLate = 250'000;            // of a helper, beside the time of the caller's part
constexpr Ticks kForgotten = 250'000'000;   // that it was late
constexpr std::chrono::seconds kLongestBeginning{5};  // of all threads, where there are no more
constexpr int64_t kMostWokenAtOnce = 2;               // by a caller, or by one that comes
constexpr int kLongestRest = 4;  // 2 to this power times as long as it was late

Ticks Now() { return static_cast<Ticks>(__rdtsc()); }

// Whether `found` within so many ticks. Offers the core to urgent work meanwhile.
template <typename Found>
bool LookFor(Ticks longest, const Found& found) {
  const Ticks start = Now();
  while (!found()) {
    if (Now() - start > longest) return false;
    if (UrgentWork::IsUnderWayElsewhere()) sched_yield();
    _mm_pause();
  }
  return true;
}

// It is held for a fraction of a microsecond: sleeping takes longer than trying again.
void TakeLock(std::unique_lock<std::mutex>& lock) {
  constexpr int kTries = 100;
  for (int i = 0; i < kTries; ++i) {
    if (lock.try_lock()) return;
    _mm_pause();
  }
  lock.lock();
}

class PoolWorkers final : public Workers {
 public:
  explicit PoolWorkers(int threads)
      : unstarted_(threads), workers_(threads), threads_(MakeThreads(threads)) {
    try {
      for (Worker& worker : workers_) {
        threads_->Start([this, &worker] {
          pthread_setname_np(pthread_self(), kThreadName);
          Work(worker);
        });
      }
    } catch (...) {
      JoinThreads();
      throw;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    started_.wait_for(lock, kLongestBeginning, [this] { return unstarted_ == 0; });
  }

  ~PoolWorkers() override { JoinThreads(); }

  int threads() const override { return static_cast<int>(workers_.size()); }

  void Run(int runners, absl::FunctionRef<void(int)> body) override {
    Loop loop{.body = body, .runners = runners};
    const Ticks start = Now();
    {
      const std::unique_lock<std::mutex> lock = Locked();
      loops_.push_back(&loop);
      Offer(runners - 1);
    }
    body(0);
    {
      const std::unique_lock<std::mutex> lock = Locked();
      if (loop.next < runners) {
        loops_.erase(std::find(loops_.begin(), loops_.end(), &loop));
        offers_.fetch_sub(runners - loop.next, std::memory_order_relaxed);
      }
    }
    if (loop.running.load(std::memory_order_acquire) == 0) return;
    const Ticks now = Now();
    loop.late.store(now + (now - start) + kLate, std::memory_order_relaxed);
    AwaitHelpers(loop);
  }

  void Enqueue(absl::AnyInvocable<void()> task, std::atomic<int64_t>* waiting) override {
    const std::unique_lock<std::mutex> lock = Locked();
    tasks_.push_back({std::move(task), waiting});
    ++unended_tasks_;
    Offer(1);
  }

 private:
  struct Loop {
    absl::FunctionRef<void(int)> body;
    const int runners;
    int next = 1;                 // runner; 0 is the caller
    std::atomic<int> running{0};  // without the caller
    std::atomic<Ticks> late{
        0};  // from when on a helper is late; 0: while the caller still computes
  };

  struct Task {
    absl::AnyInvocable<void()> run;
    std::atomic<int64_t>* waiting;
  };

  struct Worker {
    bool Rests(Ticks now) const { return now < rests_until; }
    // Ended its part of a loop so many ticks after the caller could expect it; 0: in time.
    void CountHelp(Ticks now, Ticks lateness) {
      if (lateness > 0) {
        rests_until = now + (lateness << rest);
        rest = std::min(rest + 1, kLongestRest);
      } else if (rest > 0 && now - rests_until > kForgotten) {
        rest = 0;
      }
    }
    std::condition_variable wake;
    bool sleeps = false;
    Ticks rests_until = 0;
    int rest = 0;
  };

  std::unique_lock<std::mutex> Locked() {
    std::unique_lock<std::mutex> lock(mutex_, std::defer_lock);
    TakeLock(lock);
    return lock;
  }

  // When all tasks have ended, for which threads may yet be wanted. Some may not have been started.
  void JoinThreads() {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      ended_.wait(lock, [this] { return unended_tasks_ == 0; });
      stopping_ = true;
      offers_.fetch_add(1, std::memory_order_relaxed);
      while (!asleep_.empty()) Wake(asleep_.end() - 1);
    }
    threads_->Join();
  }

  // `more` tasks or runners are wanted. Those who look for work take some of them. Few are woken
  // for the others: they wake more when they come.
  void Offer(int more) {
    int64_t missing = offers_.fetch_add(more, std::memory_order_relaxed) + more - looking_;
    missing = std::min(missing, kMostWokenAtOnce);
    const Ticks now = Now();
    for (auto i = asleep_.end(); i != asleep_.begin() && missing > 0;) {
      --i;
      if (tasks_.empty() && (*i)->Rests(now)) continue;
      i = Wake(i);
      --missing;
    }
  }

  using Sleepers = std::vector<Worker*>;

  // It counts as looking until it comes.
  Sleepers::iterator Wake(Sleepers::iterator sleeper) {
    Worker& worker = **sleeper;
    worker.sleeps = false;
    ++looking_;
    worker.wake.notify_one();
    return asleep_.erase(sleeper);
  }

  void Work(Worker& self) {
    std::unique_lock<std::mutex> lock(mutex_);
    if (--unstarted_ == 0) started_.notify_all();
    while (true) {
      if (!tasks_.empty()) {
        RunTask(lock);
      } else if (stopping_) {
        return;
      } else if (self.Rests(Now())) {
        Offer(0);  // no other was woken while this one was expected to look
        Sleep(self, lock);
      } else if (!loops_.empty()) {
        Help(self, lock);
      } else if (looking_ >= cores_) {
        Sleep(self, lock);  // it would take a core from one that computes
      } else {
        ++looking_;
        lock.unlock();
        const bool found =
            LookFor(kLookForWork, [this] { return offers_.load(std::memory_order_relaxed) > 0; });
        TakeLock(lock);
        --looking_;
        if (!found && offers_.load(std::memory_order_relaxed) == 0) Sleep(self, lock);
      }
    }
  }

  void Sleep(Worker& self, std::unique_lock<std::mutex>& lock) {
    self.sleeps = true;
    asleep_.push_back(&self);
    self.wake.wait(lock, [&self] { return !self.sleeps; });
    --looking_;
  }

  // Others are called for those that are left.
  void Took(int offers) {
    offers_.fetch_sub(offers, std::memory_order_relaxed);
    Offer(0);
  }

  void RunTask(std::unique_lock<std::mutex>& lock) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    Took(1);
    lock.unlock();
    task.waiting->fetch_sub(1, std::memory_order_relaxed);
    {
      const DenormalsFlushed flushed;
      task.run();
      task.run = nullptr;  // what it holds is gone before the task counts as ended
    }
    TakeLock(lock);
    if (--unended_tasks_ == 0) ended_.notify_all();
  }

  void Help(Worker& self, std::unique_lock<std::mutex>& lock) {
    Loop& loop = *loops_.front();
    const int runner = loop.next++;
    if (loop.next == loop.runners) loops_.erase(loops_.begin());
    loop.running.fetch_add(1, std::memory_order_relaxed);
    Took(1);
    lock.unlock();
    loop.body(runner);
    const Ticks now = Now(), late = loop.late.load(std::memory_order_relaxed);
    looking_.fetch_add(1, std::memory_order_relaxed);      // before the caller's next loop
    const bool was_last = loop.running.fetch_sub(1) == 1;  // `loop` may be gone now
    const bool is_awaited = was_last && sleeping_callers_.load() > 0;
    TakeLock(lock);
    --looking_;
    if (is_awaited) ended_.notify_all();
    self.CountHelp(now, late != 0 ? std::max<Ticks>(0, now - late) : 0);
  }

  void AwaitHelpers(const Loop& loop) {
    const auto all_ended = [&loop] { return loop.running.load() == 0; };
    if (LookFor(kLookForHelpers, all_ended)) return;
    std::unique_lock<std::mutex> lock = Locked();
    sleeping_callers_.fetch_add(1);
    ended_.wait(lock, all_ended);
    sleeping_callers_.fetch_sub(1);
  }

  const int64_t cores_ = cpu::GrantedCores();
  std::mutex mutex_;
  std::vector<Loop*> loops_;  // that want more runners
  std::deque<Task> tasks_;
  int64_t unended_tasks_ = 0;
  Sleepers asleep_;
  // Threads that look for work, have been woken to do so, or come back from a loop: for them no
  // others are woken. Without the lock it only grows.
  std::atomic<int64_t> looking_{0};
  int unstarted_;                    // threads
  std::condition_variable started_;  // all threads
  bool stopping_ = false;
  // Tasks and runners that are wanted; changed under the lock. One more when stopping.
  std::atomic<int64_t> offers_{0};
  std::condition_variable ended_;  // of the last task, or of a loop whose caller sleeps
  std::atomic<int> sleeping_callers_{0};
  std::vector<Worker> workers_;
  const std::unique_ptr<Threads> threads_;
};

}  // namespace

std::unique_ptr<Workers> StartWorkers(int threads) {
  return std::make_unique<PoolWorkers>(threads);
}

}  // namespace tilewire::threading
