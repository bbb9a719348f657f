// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/pinning.h"

#include <pthread.h>
#include <sched.h>

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/threading/arena.h"
#include "engine/threading/mutex.h"

namespace tilewire::threading {
namespace {

constexpr absl::Duration kLongestStart = absl::Seconds(5);  // of all threads

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

// The state that the threads share while each takes a core.
struct Cores {
  explicit Cores(std::vector<int> to) : all(std::move(to)) {}
  void AwaitAllTaken() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    const auto all_taken = [this]()
                               ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) { return taken == all.size(); };
    mutex.AwaitWithTimeout(absl::Condition(&all_taken), kLongestStart);
  }
  const std::vector<int> all;
  Mutex mutex;
  size_t taken ABSL_GUARDED_BY(mutex) = 0;
};

}  // namespace

// Each thread gets one of the tasks, because a task waits until all have begun.
bool PinThreads(Arena* arena) {
  const auto cores = std::make_shared<Cores>(AllowedCores());
  if (static_cast<int>(cores->all.size()) != arena->threads()) return false;
  for (size_t i = 0; i < cores->all.size(); ++i) {
    arena->Enqueue([cores] {
      MutexLock lock(&cores->mutex);
      StayOn(cores->all[cores->taken++]);
      cores->AwaitAllTaken();
    });
  }
  MutexLock lock(&cores->mutex);
  cores->AwaitAllTaken();
  return true;
}

}  // namespace tilewire::threading
