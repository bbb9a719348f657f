// SPDX-License-Identifier: Apache-2.0
//
// grpc.health.v1, from what the server knows of its readiness. Watches are bounded in number and
// end when the server drains, so that they do not delay its shutdown.
#ifndef SERVICE_FRONT_HEALTH_H_
#define SERVICE_FRONT_HEALTH_H_

#include <functional>
#include <optional>
#include <set>
#include <string>

#include "absl/base/thread_annotations.h"
#include "engine/threading/mutex.h"
#include "grpcpp/grpcpp.h"
#include "protos/health.grpc.pb.h"
#include "service/front/call_queue.h"

namespace tilewire::service {

using HealthServiceBase = grpc::health::v1::Health::WithRawMethod_Check<
    grpc::health::v1::Health::WithRawMethod_Watch<grpc::health::v1::Health::AsyncService>>;

// Thread-safe.
class HealthService final : public HealthServiceBase {
 public:
  static constexpr size_t kMostWatches = 256;
  // The service that probes of liveness ask for: whether the process makes progress. Unlike all
  // others it goes on serving while the server drains, because a drain needs no restart.
  static constexpr char kLiveness[] = "liveness";

  // `serves` returns whether a service or a model of that name serves (empty: the server as a
  // whole), or nullopt if there is none. Any thread may call it.
  explicit HealthService(std::function<std::optional<bool>(const std::string&)> serves)
      : serves_(std::move(serves)) {}

  // Before the queue starts, which serves calls until it ends.
  void Await(CallQueue* queue);

  // The answers of `serves` have changed: sends them to the watchers.
  void Changed() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nothing serves but kLiveness.
  void StartDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the watches, after their last message; new ones end at once.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Checker;
  class Watcher;

  // `asked` is check_asked_ or watch_asked_.
  template <typename Call>
  void AwaitNext(bool* asked) ABSL_LOCKS_EXCLUDED(mutex_);
  void Came(bool* asked) ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitCheck() ABSL_LOCKS_EXCLUDED(mutex_);
  void AwaitWatch() ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::Status Check(const grpc::ByteBuffer& request, grpc::ByteBuffer* response)
      ABSL_LOCKS_EXCLUDED(mutex_);
  grpc::health::v1::HealthCheckResponse::ServingStatus StatusOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::optional<bool>(const std::string&)> serves_;
  CallQueue* queue_ = nullptr;
  threading::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  // Whether gRPC was asked for the next one.
  bool check_asked_ ABSL_GUARDED_BY(mutex_) = false, watch_asked_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_HEALTH_H_
