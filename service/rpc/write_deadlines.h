// SPDX-License-Identifier: Apache-2.0
//
// Large answers that are being written: a call whose client does not read its answer in time is
// cancelled, so that what it holds is given back.
#ifndef SERVICE_RPC_WRITE_DEADLINES_H_
#define SERVICE_RPC_WRITE_DEADLINES_H_

#include <array>
#include <map>
#include <memory>
#include <vector>

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
    explicit Write(grpc::ServerContextBase* context) : context_(context) {}
    void Done() {
      const threading::MutexLock lock(&mutex_);
      context_ = nullptr;
    }

   private:
    friend class WriteDeadlines;
    threading::Mutex mutex_;
    grpc::ServerContextBase* context_ ABSL_GUARDED_BY(mutex_);
  };

  explicit WriteDeadlines(absl::Duration timeout) : timeout_(timeout) {}

  std::shared_ptr<Write> Add(grpc::ServerContextBase* context);
  // Cancels the calls whose time is over. Returns when the next one's will be.
  absl::Time CancelLate();

 private:
  // Calls are shared out, so that threads which answer at the same time seldom meet at a lock.
  struct Shard {
    threading::Mutex mutex;
    std::multimap<absl::Time, std::weak_ptr<Write>> writes ABSL_GUARDED_BY(mutex);
  };

  // Moves the calls whose time is over to `late`, and returns when the next one's will be.
  static absl::Time TakeLate(Shard* shard, std::vector<std::shared_ptr<Write>>* late);

  const absl::Duration timeout_;
  std::array<Shard, 16> shards_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_WRITE_DEADLINES_H_
