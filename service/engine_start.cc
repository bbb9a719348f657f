// SPDX-License-Identifier: Apache-2.0
#include "service/engine_start.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/threading/background_thread.h"
#include "engine/threading/pinning.h"

namespace tilewire::service {
namespace {

constexpr int kNiceness = 10;

void LowerPriorityOfThisThread() {
  const auto thread = static_cast<id_t>(syscall(SYS_gettid));
  setpriority(PRIO_PROCESS, thread, getpriority(PRIO_PROCESS, thread) + kNiceness);
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
  if (engine.ok() && pin_threads) threading::PinThreads(&(*engine)->arena());
  return engine;
}

}  // namespace tilewire::service
