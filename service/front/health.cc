// SPDX-License-Identifier: Apache-2.0
#include "service/front/health.h"

#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "service/front/method_table.h"
#include "service/wire/inflate.h"

namespace tilewire::service {
namespace {

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;

// Both are served here, as their rows of the table of methods say.
static_assert(MethodNamed("grpc.health.v1.Health", "Check").bound == RequestBound::kNames);
static_assert(MethodNamed("grpc.health.v1.Health", "Watch").bound == RequestBound::kNames);

bool Parse(const grpc::ByteBuffer& bytes, HealthCheckRequest* request) {
  if (!bytes.Valid()) return false;
  const auto any = [](int64_t) { return absl::OkStatus(); };
  grpc::ByteBuffer copy = bytes;
  if (static_cast<int64_t>(copy.Length()) > kMaxNameRequestBytes) return false;
  if (!Inflate(kMaxNameRequestBytes, any, &copy).ok()) return false;
  return grpc::SerializationTraits<HealthCheckRequest>::Deserialize(&copy, request).ok();
}

grpc::ByteBuffer Serialized(HealthCheckResponse::ServingStatus status) {
  HealthCheckResponse response;
  response.set_status(status);
  const grpc::Slice slice(response.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace

// One Check() call. It deletes itself once it is answered.
class HealthService::Checker {
 public:
  explicit Checker(HealthService* service) : service_(service) {}

  void Ask(grpc::ServerCompletionQueue* queue) {
    service_->RequestCheck(&context_, &request_, &writer_, queue, queue, arrived_.tag());
  }

 private:
  // Not OK when the server shuts down: nothing else will happen then.
  void Arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    HealthService* const service = service_;  // another thread may see this call's end
    service->Came(&service->check_asked_);
    FinishCall([this] { return service_->Check(request_, &response_); },
               [this](const grpc::Status& status) {
                 if (status.ok()) {
                   writer_.Finish(response_, status, written_.tag());
                 } else {
                   writer_.FinishWithError(status, written_.tag());
                 }
               });
    service->AwaitCheck();
  }
  void Written(bool) { delete this; }

  HealthService* const service_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_, response_;
  grpc::ServerAsyncResponseWriter<grpc::ByteBuffer> writer_{&context_};
  EventOf<Checker, &Checker::Arrived> arrived_{this};
  EventOf<Checker, &Checker::Written> written_{this};
};

// One Watch() call. Its state is guarded by the service's lock; it deletes itself after the last of
// its events.
class HealthService::Watcher {
 public:
  explicit Watcher(HealthService* service) : service_(service) {}

  void Ask(grpc::ServerCompletionQueue* queue) {
    context_.AsyncNotifyWhenDone(over_.tag());
    service_->RequestWatch(&context_, &request_, &writer_, queue, queue, arrived_.tag());
  }

  void Update() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
    if (finished_ || writing_) return;
    const HealthCheckResponse::ServingStatus status = service_->StatusOf(name_);
    if (status != sent_) {
      writer_.Write(Serialized(status), wrote_.tag());
      sent_ = status;
      writing_ = true;
    } else if (service_->ending_) {
      Finish(grpc::Status(grpc::StatusCode::UNAVAILABLE, "the server is draining"));
    }
  }

 private:
  // Not OK when the server shuts down: nothing else will happen then.
  void Arrived(bool ok) {
    if (!ok) {
      delete this;
      return;
    }
    service_->Came(&service_->watch_asked_);
    {
      threading::MutexLock lock(&service_->mutex_);
      begun_ = true;
      FinishCall([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) { return Begin(); },
                 [this](const grpc::Status& status)
                     ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
                       if (!status.ok()) Finish(status);
                     });
    }
    service_->AwaitWatch();
    Leave();
  }

  grpc::Status Begin() ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
    HealthCheckRequest parsed;
    if (!Parse(request_, &parsed)) {
      return {grpc::StatusCode::INVALID_ARGUMENT, "not a HealthCheckRequest"};
    }
    if (service_->watchers_.size() >= kMostWatches) {
      return {grpc::StatusCode::RESOURCE_EXHAUSTED,
              absl::StrCat(kMostWatches, " calls watch the health already, the most that may")};
    }
    if (is_over_) return grpc::Status::CANCELLED;
    name_ = parsed.service();
    service_->watchers_.insert(this);
    Update();
    return grpc::Status::OK;
  }

  // A second one would end the process: a call that was refused may be cancelled as well.
  void Finish(const grpc::Status& status) ABSL_EXCLUSIVE_LOCKS_REQUIRED(service_->mutex_) {
    if (finished_) return;
    writer_.Finish(status, ended_.tag());
    finished_ = true;
  }

  void Wrote(bool ok) {
    threading::MutexLock lock(&service_->mutex_);
    writing_ = false;
    if (ok && !is_over_) {
      Update();
    } else {
      Finish(grpc::Status::CANCELLED);
    }
  }

  // Also when the client has given up.
  void Over(bool) {
    {
      threading::MutexLock lock(&service_->mutex_);
      is_over_ = true;
      if (begun_ && !writing_) Finish(grpc::Status::CANCELLED);
    }
    Leave();
  }

  void Ended(bool) { Leave(); }

  void Leave() {
    {
      threading::MutexLock lock(&service_->mutex_);
      if (--present_ > 0) return;
      service_->watchers_.erase(this);
    }
    delete this;
  }

  HealthService* const service_;
  grpc::ServerContext context_;
  grpc::ByteBuffer request_;
  grpc::ServerAsyncWriter<grpc::ByteBuffer> writer_{&context_};
  EventOf<Watcher, &Watcher::Arrived> arrived_{this};
  EventOf<Watcher, &Watcher::Wrote> wrote_{this};
  EventOf<Watcher, &Watcher::Ended> ended_{this};
  EventOf<Watcher, &Watcher::Over> over_{this};
  int present_ = 3;  // who uses it: its arrival, its end, and that it is over
  std::string name_;
  int sent_ = -1;
  bool begun_ = false, writing_ = false, finished_ = false, is_over_ = false;
};

// If memory for another call runs out, the queue's next look tries again.
template <typename Call>
void HealthService::AwaitNext(bool* asked) {
  {
    threading::MutexLock lock(&mutex_);
    if (std::exchange(*asked, true)) return;
  }
  if (!queue_->AskFor([this] { return std::make_unique<Call>(this); })) Came(asked);
}

void HealthService::AwaitCheck() { AwaitNext<Checker>(&check_asked_); }

void HealthService::AwaitWatch() { AwaitNext<Watcher>(&watch_asked_); }

void HealthService::Came(bool* asked) {
  threading::MutexLock lock(&mutex_);
  *asked = false;
}

void HealthService::Await(CallQueue* queue) {
  queue_ = queue;
  queue->Add([this] {
    AwaitCheck();
    AwaitWatch();
  });
}

HealthCheckResponse::ServingStatus HealthService::StatusOf(const std::string& name) {
  const std::optional<bool> serves = serves_(name);
  if (!serves) return HealthCheckResponse::SERVICE_UNKNOWN;
  const bool may_serve = !draining_ || name == kLiveness;
  return *serves && may_serve ? HealthCheckResponse::SERVING : HealthCheckResponse::NOT_SERVING;
}

grpc::Status HealthService::Check(const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  HealthCheckRequest parsed;
  if (!Parse(request, &parsed)) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "not a HealthCheckRequest"};
  }
  HealthCheckResponse::ServingStatus status;
  {
    threading::MutexLock lock(&mutex_);
    status = StatusOf(parsed.service());
  }
  if (status == HealthCheckResponse::SERVICE_UNKNOWN) {
    return {grpc::StatusCode::NOT_FOUND, "no such service or model"};
  }
  *response = Serialized(status);
  return grpc::Status::OK;
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
