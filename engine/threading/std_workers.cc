// SPDX-License-Identifier: Apache-2.0
//
// One queue of tasks and a list of loops that still want runners, under one lock. Loops go first: a
// thread waits for them. Who calls Run() is a runner itself and needs no other; a runner that no
// thread has come for when the caller's own has ended is never started, because it would find
// nothing to do.
#include <pthread.h>

#include <condition_variable>
#include <deque>
#include <list>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "engine/threading/denormals.h"
#include "engine/threading/workers.h"

namespace tilewire::threading {
namespace {

class StdWorkers final : public Workers {
 public:
  explicit StdWorkers(int threads) {
    for (int i = 0; i < threads; ++i) {
      threads_.emplace_back([this] {
        pthread_setname_np(pthread_self(), kThreadName);
        Work();
      });
    }
  }

  ~StdWorkers() override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  int threads() const override { return static_cast<int>(threads_.size()); }

  void Run(int runners, absl::FunctionRef<void(int)> body) override {
    Loop loop{body, runners};
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      loops_.push_back(&loop);
    }
    changed_.notify_all();
    body(0);
    std::unique_lock<std::mutex> lock(mutex_);
    loops_.remove(&loop);
    changed_.wait(lock, [&loop] { return loop.running == 0; });
  }

  void Inside(absl::FunctionRef<void()> body) override { body(); }

  void Enqueue(absl::AnyInvocable<void()> task, std::atomic<int64_t>* waiting) override {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      tasks_.push_back({std::move(task), waiting});
    }
    changed_.notify_all();
  }

 private:
  struct Loop {
    absl::FunctionRef<void(int)> body;
    const int runners;
    int next = 1;     // runner; 0 is the caller
    int running = 0;  // without the caller
  };

  struct Task {
    absl::AnyInvocable<void()> run;
    std::atomic<int64_t>* waiting;
  };

  void Work() {
    std::unique_lock<std::mutex> lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !tasks_.empty() || !loops_.empty(); });
      if (!loops_.empty()) {
        TakeRunner(lock);
      } else if (!tasks_.empty()) {
        RunTask(lock);
      } else {
        return;
      }
    }
  }

  void RunTask(std::unique_lock<std::mutex>& lock) {
    Task task = std::move(tasks_.front());
    tasks_.pop_front();
    lock.unlock();
    task.waiting->fetch_sub(1, std::memory_order_relaxed);
    {
      const DenormalsFlushed flushed;
      task.run();
      task.run = nullptr;  // what it holds is gone before the task counts as ended
    }
    lock.lock();
  }

  void TakeRunner(std::unique_lock<std::mutex>& lock) {
    Loop& loop = *loops_.front();
    const int runner = loop.next++;
    if (loop.next >= loop.runners) loops_.pop_front();
    ++loop.running;
    lock.unlock();
    loop.body(runner);
    lock.lock();
    if (--loop.running == 0) changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::list<Loop*> loops_;  // that want more runners
  std::deque<Task> tasks_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

std::unique_ptr<Workers> StartWorkers(int threads) { return std::make_unique<StdWorkers>(threads); }

}  // namespace tilewire::threading
