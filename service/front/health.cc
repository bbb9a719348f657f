// SPDX-License-Identifier: Apache-2.0
#include "service/front/health.h"

#include <utility>

namespace tilewire::service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

constexpr size_t kMostRequestBytes = 64 << 10;

bool Parse(const grpc::ByteBuffer& bytes, HealthCheckRequest* request) {
  if (!bytes.Valid() || bytes.Length() > kMostRequestBytes) return false;
  grpc::ByteBuffer copy = bytes;
  return grpc::SerializationTraits<HealthCheckRequest>::Deserialize(&copy, request).ok();
}

grpc::ByteBuffer Serialized(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  const grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

// One Watch() call. Its state is guarded by the service's lock; gRPC calls back on threads of its
// own, never from within StartWrite() or Finish().
class HealthService::Watcher final : public grpc::ServerWriteReactor<grpc::ByteBuffer> {
 public:
  Watcher(HealthService* service, std::string name) : service_(service), name_(std::move(name)) {}

  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
    if (finished_ || writing_) return;
    const HealthCheckResponse::ServingStatus status = service_->StatusOf(name_);
    if (status != sent_) {
      sent_ = status;
      writing_ = true;
      message_ = Serialized(status);
      StartWrite(&message_);
    } else if (service_->ending_) {
      End(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is draining"));
    }
  }

  // A second Finish() would end the process: a call that was refused may be cancelled as well.
  void End(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
    if (std::exchange(finished_, true)) return;
    Finish(status);
  }

  void OnWriteDone(bool ok) override {
    threading::MutexLock lock(&service_->mutex_);
    writing_ = false;
    if (ok) {
      Update();
    } else {
      End(grpc::Status::CANCELLED);
    }
  }

  void OnCancel() override {
    threading::MutexLock lock(&service_->mutex_);
    if (!writing_) End(grpc::Status::CANCELLED);
  }

  void OnDone() override {
    {
      threading::MutexLock lock(&service_->mutex_);
      service_->watchers_.erase(this);
    }
    delete this;
  }

 private:
  HealthService* const service_;
  const std::string name_;
  int sent_ = -1;
  bool writing_ = false, finished_ = false;
  grpc::ByteBuffer message_;
};

HealthCheckResponse::ServingStatus HealthService::StatusOf(const std::string& name) {
  const std::optional<bool> serves = serves_(name);
  if (!serves) return HealthCheckResponse::SERVICE_UNKNOWN;
  const bool may_serve = !draining_ || name == kLiveness;
  return *serves && may_serve ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::ServerUnaryReactor* HealthService::Check(grpc::CallbackServerContext* context,
                                               const grpc::ByteBuffer* request,
                                               grpc::ByteBuffer* response) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  HealthCheckRequest parsed;
  if (!Parse(*request, &parsed)) {
    reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "not a HealthCheckRequest"});
    return reactor;
  }
  HealthCheckResponse::ServingStatus status;
  {
    threading::MutexLock lock(&mutex_);
    status = StatusOf(parsed.service());
  }
  *response = Serialized(status);
  const bool unknown = status == HealthCheckResponse::SERVICE_UNKNOWN;
  reactor->Finish(unknown ? grpc::Status(grpc::StatusCode::NOT_FOUND, "no such service or model")
                          : grpc::Status::OK);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* HealthService::Watch(grpc::CallbackServerContext*,
                                                                 const grpc::ByteBuffer* request) {
  HealthCheckRequest parsed;
  const bool ok = Parse(*request, &parsed);
  auto* watcher = new Watcher(this, parsed.service());
  threading::MutexLock lock(&mutex_);
  if (!ok) {
    watcher->End({grpc::StatusCode::INVALID_ARGUMENT, "not a HealthCheckRequest"});
  } else if (watchers_.size() >= kMostWatches) {
    watcher->End({grpc::StatusCode::RESOURCE_EXHAUSTED, "too many calls watch the health"});
  } else {
    watchers_.insert(watcher);
    watcher->Update();
  }
  return watcher;
}

void HealthService::Changed() {
  threading::MutexLock lock(&mutex_);
  for (Watcher* watcher : watchers_) watcher->Update();
}

void HealthService::StartDrain() {
  {
    threading::MutexLock lock(&mutex_);
    draining_ = true;
  }
  Changed();
}

void HealthService::EndWatches() {
  {
    threading::MutexLock lock(&mutex_);
    ending_ = true;
  }
  Changed();
}

}  // namespace tilewire::service
