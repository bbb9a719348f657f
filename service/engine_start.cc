// SPDX-License-Identifier: Apache-2.0
#include "service/engine_start.h"

#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/threading/arena.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"

namespace tilewire::service {
namespace {

constexpr int kNiceness = 10;
constexpr absl::Duration kLongestStart = absl::Seconds(5);  // of all compute threads

void LowerPriorityOfThisThread() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kNiceness);
}

// Empty where the process may use more cores than a cpu_set_t holds.
std::vector<int> AllowedCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof(allowed), &allowed) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed)) cores.push_back(core);
  }
  return cores;
}

void StayOn(int core) {
  cpu_set_t only;
  CPU_ZERO(&only);
  CPU_SET(core, &only);
  pthread_setaffinity_np(pthread_self(), sizeof(only), &only);
}

// What the compute threads share while each takes a core.
struct Spread {
  explicit Spread(std::vector<int> to) : cores(std::move(to)) {}
  void AwaitAll() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto all = [this]()
                         ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return taken == cores.size(); };
    mutex.AwaitWithTimeout(absl::Condition(&all), kLongestStart);
  }
  const std::vector<int> cores;
  threading::Mutex mutex;
  size_t taken ABSL_GUARDED_BY(mutex) = 0;
};

// Each of the arena's threads gets one of the tasks, because a task waits for the others.
void SpreadOver(std::vector<int> cores, threading::Arena* arena) {
  const auto spread = std::make_shared<Spread>(std::move(cores));
  for (size_t i = 0; i < spread->cores.size(); ++i) {
    arena->Enqueue([spread] {
      threading::MutexLock lock(&spread->mutex);
      StayOn(spread->cores[spread->taken++]);
      spread->AwaitAll();
    });
  }
  threading::MutexLock lock(&spread->mutex);
  spread->AwaitAll();
}

}  // namespace

// The compute threads inherit the priority of the thread that makes them.
absl::StatusOr<std::unique_ptr<Engine>> StartEngine(const EngineOptions& options,
                                                    bool pin_threads) {
  absl::StatusOr<std::unique_ptr<Engine>> engine = absl::InternalError("not started");
  {
    const threading::BackgroundThread starter("tw-start", [&] {
      LowerPriorityOfThisThread();
      engine = Engine::Create(options);
    });
  }
  if (!engine.ok() || !pin_threads) return engine;
  threading::Arena& arena = (*engine)->arena();
  std::vector<int> cores = AllowedCores();
  if (static_cast<int>(cores.size()) == arena.threads()) SpreadOver(std::move(cores), &arena);
  return engine;
}

}  // namespace tilewire::service
