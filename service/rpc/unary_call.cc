// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/unary_call.h"

#include <algorithm>
#include <string>

#include "absl/strings/str_cat.h"
#include "service/observe/steady_time.h"
#include "service/rpc/idle_slots.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

// Smaller answers fit into the buffers between the server and a client that does not read.
constexpr size_t kLargeAnswerBytes = 64 << 10;

struct MemoryOfCall {
  alignas(UnaryCall) std::byte bytes[sizeof(UnaryCall)];
};

// As old as the process: calls may end while it ends.
IdleSlots<MemoryOfCall>& IdleCalls() {
  static auto* const slots = new IdleSlots<MemoryOfCall>;
  return *slots;
}

}  // namespace

void* UnaryCall::operator new(size_t) {
  std::unique_ptr<MemoryOfCall> memory = IdleCalls().Take();
  if (memory == nullptr) memory = std::make_unique<MemoryOfCall>();
  return memory.release();
}

void UnaryCall::operator delete(void* memory) {
  IdleCalls().Keep(std::unique_ptr<MemoryOfCall>(static_cast<MemoryOfCall*>(memory)));
}

UnaryCall::UnaryCall(grpc::CallbackServerContext* context, const CallHost& host, const char* method)
    : context_(context),
      host_(host),
      method_(method),
      arrival_(SteadyNow()),
      deadline_(Steady(absl::FromChrono(context->deadline()))),
      ticket_(host.admission) {}

grpc::ServerUnaryReactor* UnaryCall::Answer(grpc::CallbackServerContext* context,
                                            const CallHost& host, const char* method,
                                            const absl::Status& status) {
  auto* call = new UnaryCall(context, host, method);
  call->End(status);
  return call;
}

grpc::ServerUnaryReactor* UnaryCall::Start(grpc::CallbackServerContext* context,
                                           const CallHost& host, const char* method,
                                           const grpc::ByteBuffer& request,
                                           grpc::ByteBuffer* response, OwnedJob job) {
  auto* call = new UnaryCall(context, host, method);
  call->response_ = response;
  call->job_ = std::move(job);
  call->Admit(request);
  return call;
}

// After Submit() another thread may run the call to its end, so nothing of it may be touched.
void UnaryCall::Admit(const grpc::ByteBuffer& request) {
  WorkTerms terms;
  terms.deadline = deadline_;
  terms.ticket = &ticket_;
  absl::Status status = WithoutExceptions([&] {
    const auto bytes = static_cast<int64_t>(request.Valid() ? request.Length() : 0);
    const absl::Status charged = ticket_.Charge(bytes, "a request");
    return charged.ok() ? job_->Prepare(&terms) : charged;
  });
  const std::string model = terms.model;
  set_terms(std::move(terms));
  if (status.ok()) status = host_.dispatcher->Submit(this);
  if (status.ok()) return;
  if (absl::IsUnavailable(status)) {
    const absl::Duration retry = host_.dispatcher->RetryAfter(model);
    context_->AddTrailingMetadata("grpc-retry-pushback-ms",
                                  absl::StrCat(absl::ToInt64Milliseconds(retry)));
  }
  End(status);
}

absl::Status UnaryCall::Interrupted() const {
  if (terms().work_class == WorkClass::kBackground) host_.dispatcher->RunWaiting();
  // The deadline first: gRPC cancels a call whose deadline has passed.
  if (SteadyNow() >= terms().deadline) {
    return absl::DeadlineExceededError("the deadline passed; no more work was done");
  }
  if (stopped_.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
  return absl::OkStatus();
}

RunOptions UnaryCall::LimitsOfWork() {
  return {.interrupted = [this] { return Interrupted(); },
          .stop = &stopped_,
          .max_output_bytes = host_.max_message_bytes,
          .reserve = [this](int64_t bytes) { return ChargeWork(bytes); },
          .allocate_output = [this](size_t bytes) { return host_.answers->Take(bytes); },
          .serial = lane_ == Lane::kExpress};
}

// The engine asks for memory when it has the plan.
absl::Status UnaryCall::ChargeWork(int64_t bytes) {
  host_.dispatcher->Prepared(this);
  const absl::Status charged = ticket_.Charge(bytes, "the tensors of a request");
  if (charged.ok()) work_bytes_ += bytes;
  return charged;
}

absl::Status UnaryCall::RunJob() {
  absl::Status status = Interrupted();
  if (status.ok()) status = job_->Run(*this);
  ticket_.GiveBack(work_bytes_);
  job_ = nullptr;  // what it holds is free before a slow client has read its answer
  if (!status.ok()) return status;
  const auto bytes = static_cast<int64_t>(response_->Length());
  if (bytes > host_.max_message_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("an answer of ", bytes, " bytes; at most ",
                                                     host_.max_message_bytes,
                                                     " (--max_message_mb)"));
  }
  return ticket_.Charge(bytes, "an answer");
}

void UnaryCall::Run(Lane lane) {
  lane_ = lane;
  start_ = SteadyNow();
  const absl::Status status = WithoutExceptions([this] { return RunJob(); });
  if (!status.ok()) {
    response_->Clear();
  } else if (response_->Length() > kLargeAnswerBytes) {
    write_ = host_.writes->Add(context_);
  }
  End(status);
}

void UnaryCall::End(const absl::Status& status) {
  const absl::Time now = SteadyNow();
  const bool ran = start_ != absl::InfinitePast();
  const bool is_our_limit =
      terms().limit != nullptr && absl::IsDeadlineExceeded(status) && terms().deadline < deadline_;
  const absl::Status told = is_our_limit ? absl::DeadlineExceededError(terms().limit) : status;
  host_.log->Ended({.method = method_,
                    .model = terms().model,
                    .status = &told,
                    .peer = [this] { return context_->peer(); },
                    .waited = (ran ? start_ : now) - arrival_,
                    .ran = ran ? now - start_ : absl::ZeroDuration()});
  Finish(ToGrpcStatus(told));
}

void UnaryCall::OnCancel() {
  stopped_.store(true, std::memory_order_relaxed);
  if (!host_.dispatcher->Withdraw(this)) return;
  End(SteadyNow() >= deadline_
          ? absl::DeadlineExceededError("the deadline passed while the request waited")
          : absl::CancelledError("cancelled"));
}

void UnaryCall::OnDone() {
  if (write_ != nullptr) write_->Done();
  delete this;
}

}  // namespace tilewire::service
