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

namespace tilewire::service {

using HealthServiceBase = grpc::health::v1::Health::WithRawCallbackMethod_Check<
    grpc::health::v1::Health::WithRawCallbackMethod_Watch<
        grpc::health::v1::Health::CallbackService>>;

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

  grpc::ServerUnaryReactor* Check(grpc::CallbackServerContext* context,
                                  const grpc::ByteBuffer* request,
                                  grpc::ByteBuffer* response) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Watch(grpc::CallbackServerContext* context,
                                                    const grpc::ByteBuffer* request) override;

  // The answers of `serves` have changed: sends them to the watchers.
  void Changed() ABSL_LOCKS_EXCLUDED(mutex_);
  // From now on nothing serves but kLiveness.
  void StartDrain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Ends the watches, after their last message; new ones end at once.
  void EndWatches() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Watcher;

  grpc::health::v1::HealthCheckResponse::ServingStatus StatusOf(const std::string& name)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::function<std::optional<bool>(const std::string&)> serves_;
  threading::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool ending_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<Watcher*> watchers_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_FRONT_HEALTH_H_
