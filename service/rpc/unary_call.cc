// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/unary_call.h"

#include <algorithm>
#include <string>

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "grpc/grpc.h"
#include "service/observe/steady_time.h"
#include "service/rpc/idle_slots.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

// Calls of a method that gRPC is asked for at a time; further ones that come at once wait for one
// of these to be taken.
constexpr int kAsked = 8;

struct MemoryOfCall {
  alignas(UnaryCall) std::byte bytes[sizeof(UnaryCall)];
};

// As old as the process: calls may end while it ends.
IdleSlots<MemoryOfCall>& IdleCalls() {
  static auto* const slots = new IdleSlots<MemoryOfCall>;
  return *slots;
}

}  // namespace

absl::Status OutOfMemory() {
  try {
    return absl::ResourceExhaustedError(
        "the system gives the server no memory for this request: a lower --max_work_mb refuses "
        "earlier, a smaller batch takes less");
  } catch (const std::bad_alloc&) {
    return absl::Status(absl::StatusCode::kResourceExhausted, "");
  }
}

void* UnaryCall::operator new(size_t) {
  std::unique_ptr<MemoryOfCall> memory = IdleCalls().Take();
  if (memory == nullptr) memory = std::make_unique<MemoryOfCall>();
  return memory.release();
}

void UnaryCall::operator delete(void* memory) {
  IdleCalls().Keep(std::unique_ptr<MemoryOfCall>(static_cast<MemoryOfCall*>(memory)));
}

// If memory for another call runs out, the next call that ends tries again, and so does each look.
void UnaryCall::Await(UnaryMethod* method) {
  while (method->asked.fetch_add(1, std::memory_order_relaxed) < kAsked) {
    if (!method->queue->AskFor([method] { return absl::WrapUnique(new UnaryCall(method)); })) break;
  }
  method->asked.fetch_sub(1, std::memory_order_relaxed);
}

void UnaryCall::Ask(grpc::ServerCompletionQueue* queue) {
  context_.AsyncNotifyWhenDone(over_.tag());
  method_->ask(&context_, &request_, &writer_, queue, &arrived_);
}

// Not OK when the server shuts down: nothing else will happen then.
void UnaryCall::Arrived(bool ok) {
  UnaryMethod* const method = method_;
  method->asked.fetch_sub(1, std::memory_order_relaxed);
  if (!ok) {
    delete this;
    return;
  }
  if (Serve() && before_cancel_.fetch_sub(1) == 1) Cancel();
  Leave();
  Await(method);
}

// Whether the dispatcher has it.
bool UnaryCall::Serve() {
  arrival_ = SteadyNow();
  deadline_ = Steady(absl::FromChrono(context_.deadline()));
  const absl::Status status = WithoutExceptions([this]() -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(job_, method_->serve(request_, &response_));
    return absl::OkStatus();
  });
  if (status.ok() && job_ != nullptr) return Admit();
  End(status);
  return false;
}

absl::Status UnaryCall::Prepare(WorkTerms* terms) {
  terms->deadline = deadline_;
  terms->ticket = &ticket_;
  const auto bytes = static_cast<int64_t>(request_.Valid() ? request_.Length() : 0);
  ABSL_RETURN_IF_ERROR(ticket_.Charge(bytes, "a request"));
  return job_->Prepare(terms);
}

bool UnaryCall::Admit() {
  WorkTerms terms;
  absl::Status status = WithoutExceptions([&] { return Prepare(&terms); });
  set_terms(std::move(terms));
  // Another thread may run the call to its end from here on, but not free it: see Arrived().
  if (status.ok()) status = WithoutExceptions([this] { return host_.dispatcher->Submit(this); });
  if (status.ok()) return true;
  if (absl::IsUnavailable(status)) AddPushback();
  End(status);
  return false;
}

// Without memory for it, the client decides when it tries again.
void UnaryCall::AddPushback() {
  WithoutExceptions([this] {
    const absl::Duration retry = host_.dispatcher->RetryAfter(terms().model);
    context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                                 absl::StrCat(absl::ToInt64Milliseconds(retry)));
    return absl::OkStatus();
  }).IgnoreError();
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
  return ticket_.ChargeRun(bytes, "the tensors of a request");
}

absl::Status UnaryCall::ChargeAnswer() {
  const auto bytes = static_cast<int64_t>(response_.Length());
  if (bytes > host_.max_message_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("an answer of ", bytes, " bytes; at most ",
                                                     host_.max_message_bytes,
                                                     " (--max_message_mb)"));
  }
  return ticket_.ChangeTo(bytes, "an answer");
}

absl::Status UnaryCall::RunJob() {
  absl::Status status = Interrupted();
  if (status.ok()) status = job_->Run(*this);
  // Their memory is free before a slow client has read its answer.
  job_ = nullptr;
  request_.Clear();
  if (status.ok()) status = ChargeAnswer();
  if (!status.ok()) ticket_.GiveBack(ticket_.bytes());
  return status;
}

void UnaryCall::Run(Lane lane) {
  lane_ = lane;
  start_ = SteadyNow();
  const absl::Status status = WithoutExceptions([this] { return RunJob(); });
  if (!status.ok()) response_.Clear();
  End(status);
}

void UnaryCall::End(const absl::Status& status) {
  if (status.ok()) host_.unread->Add(this, static_cast<int64_t>(response_.Length()));
  FinishCall([this, &status] { return Logged(status); },
             [this](const grpc::Status& told) {
               if (told.ok()) {
                 writer_.Finish(response_, told, written_.tag());
               } else {
                 writer_.FinishWithError(told, written_.tag());
               }
             });
}

// The status that the client gets.
grpc::Status UnaryCall::Logged(const absl::Status& status) {
  const absl::Time now = SteadyNow();
  const bool ran = start_ != absl::InfinitePast();
  const bool is_our_limit =
      terms().limit != nullptr && absl::IsDeadlineExceeded(status) && terms().deadline < deadline_;
  const absl::Status told = is_our_limit ? absl::DeadlineExceededError(terms().limit) : status;
  host_.log->Ended({.method = method_->name,
                    .model = terms().model,
                    .status = &told,
                    .peer = [this] { return context_.peer(); },
                    .waited = (ran ? start_ : now) - arrival_,
                    .ran = ran ? now - start_ : absl::ZeroDuration()});
  return ToGrpcStatus(told);
}

void UnaryCall::Written(bool ok) {
  const absl::Status ended = host_.unread->Remove(this, ok);
  if (!ended.ok()) LogUnread(ended);
  Leave();
}

void UnaryCall::LogUnread(const absl::Status& why) {
  host_.log->EndedUnread(
      {.method = method_->name, .model = terms().model, .status = &why, .peer = [this] {
         return context_.peer();
       }});
}

// gRPC sends the status past the bytes of the answer, which wait for the client's permission.
void UnaryCall::EndUnread(const absl::Status& why) {
  LogUnread(why);
  grpc_call_cancel_with_status(context_.c_call(), static_cast<grpc_status_code>(why.code()),
                               std::string(why.message()).c_str(), nullptr);
}

void UnaryCall::Over(bool) {
  if (context_.IsCancelled()) {
    stopped_.store(true, std::memory_order_relaxed);
    if (before_cancel_.fetch_sub(1) == 1) Cancel();
  }
  Leave();
}

void UnaryCall::Cancel() {
  if (!host_.dispatcher->Withdraw(this)) return;
  End(SteadyNow() >= deadline_
          ? absl::DeadlineExceededError("the deadline passed while the request waited")
          : absl::CancelledError("cancelled"));
}

void UnaryCall::Leave() {
  if (present_.fetch_sub(1) > 1) return;
  UnaryMethod* const method = method_;
  delete this;
  Await(method);
}

}  // namespace tilewire::service
