// SPDX-License-Identifier: Apache-2.0
//
// A named thread that is joined when this object is destroyed.
#ifndef ENGINE_THREADING_BACKGROUND_THREAD_H_
#define ENGINE_THREADING_BACKGROUND_THREAD_H_

#include <pthread.h>

#include <thread>
#include <utility>

#include "absl/functional/any_invocable.h"

namespace tilewire::threading {

// Thread-compatible. `name` has at most 15 letters; `body` has to end by itself.
class BackgroundThread {
 public:
  BackgroundThread(const char* name, absl::AnyInvocable<void()> body)
      : thread_([name, body = std::move(body)]() mutable {
          pthread_setname_np(pthread_self(), name);
          body();
        }) {}
  ~BackgroundThread() { thread_.join(); }
  BackgroundThread(const BackgroundThread&) = delete;

 private:
  std::thread thread_;
};

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_BACKGROUND_THREAD_H_
