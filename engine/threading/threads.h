// SPDX-License-Identifier: Apache-2.0
//
// Where an arena's threads come from; what they do is not known here. They are oneTBB's
// (tbb_threads.cc), or the standard library's (std_threads.cc) where every thread must be visible
// to ThreadSanitizer.
#ifndef ENGINE_THREADING_THREADS_H_
#define ENGINE_THREADING_THREADS_H_

#include <memory>

#include "absl/functional/any_invocable.h"

namespace tilewire::threading {

// Used by one thread. They have the priority of the thread that makes this object and starts them.
class Threads {
 public:
  virtual ~Threads() = default;  // after Join()

  // Runs `body` on a thread that nothing else uses before it ends. May be called as often as said
  // to MakeThreads(). Throws std::runtime_error (std::system_error among them) where the system
  // refuses a thread.
  virtual void Start(absl::AnyInvocable<void()> body) = 0;
  // Waits for the bodies that were started.
  virtual void Join() = 0;
};

std::unique_ptr<Threads> MakeThreads(int most);

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_THREADS_H_
