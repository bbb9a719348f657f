// SPDX-License-Identifier: Apache-2.0
//
// Large answers that are being written: a call whose client does not read its answer in time is
// cancelled, so that what it holds is given back.
#ifndef SERVICE_RPC_WRITE_DEADLINES_H_
#define SERVICE_RPC_WRITE_DEADLINES_H_

#include <map>
#include <memory>
#include <mutex>

#include "absl/base/thread_annotations.h"
#include "absl/time/time.h"
#include "engine/threading/mutex.h"
#include "grpcpp/server_context.h"

namespace tilewire::service {

// Thread-safe.
class WriteDeadlines {
 public:
  // One answer. The owner's call ends with Done(), from then on it is not cancelled.
  class Write {
   public:
    explicit Write(grpc::CallbackServerContext* context) : context_(context) {}
    void Done() {
      const std::lock_guard<std::recursive_mutex> lock(mutex_);
      context_ = nullptr;
    }

   private:
    friend class WriteDeadlines;
    // Cancelling may end the call on the same thread, which calls Done().
    std::recursive_mutex mutex_;
    grpc::CallbackServerContext* context_;
  };

  explicit WriteDeadlines(absl::Duration timeout) : timeout_(timeout) {}

  std::shared_ptr<Write> Add(grpc::CallbackServerContext* context) ABSL_LOCKS_EXCLUDED(mutex_);
  // Cancels the calls whose time is over. Returns when the next one's will be.
  absl::Time CancelLate() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  const absl::Duration timeout_;
  threading::Mutex mutex_;
  std::multimap<absl::Time, std::weak_ptr<Write>> writes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_WRITE_DEADLINES_H_
