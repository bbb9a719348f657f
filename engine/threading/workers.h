// SPDX-License-Identifier: Apache-2.0
//
// The threads of an Arena; how work is cut is not known here. pool_workers.cc has them.
#ifndef ENGINE_THREADING_WORKERS_H_
#define ENGINE_THREADING_WORKERS_H_

#include <atomic>
#include <cstdint>
#include <memory>

#include "absl/functional/any_invocable.h"
#include "absl/functional/function_ref.h"

namespace tilewire::threading {

// As the operating system shows them. They have the priority of the thread that started them.
constexpr char kThreadName[] = "tw-compute";

// Thread-safe.
class Workers {
 public:
  virtual ~Workers() = default;  // waits for every task that was enqueued

  virtual int threads() const = 0;
  // Runs body(0) on the calling thread, body(1) ... body(runners - 1) where threads come for them
  // before body(0) has ended; returns when all that began have ended. `runners` >= 2.
  virtual void Run(int runners, absl::FunctionRef<void(int)> body) = 0;
  // Runs `task` soon on one of the threads, denormals flushed, in about the order of the calls.
  // Subtracts 1 from `*waiting` when it begins.
  virtual void Enqueue(absl::AnyInvocable<void()> task, std::atomic<int64_t>* waiting) = 0;
};

std::unique_ptr<Workers> StartWorkers(int threads);

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_WORKERS_H_
