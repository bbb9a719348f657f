// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/unary_call.h"

#include "absl/memory/memory.h"
#include "absl/strings/str_cat.h"
#include "grpc/grpc.h"
#include "service/observe/steady_time.h"
#include "service/rpc/idle_slots.h"
#include "service/wire/inflate.h"
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

absl::Status BufferedCall::Receive(Ticket* ticket, int64_t most) {
  const auto charge = [ticket](int64_t bytes) {
    return ticket->Charge(bytes, "a request, inflated,");
  };
  return Inflate(most, charge, &request_);
}

void CancelWithStatus(const absl::Status& why, grpc::ServerContext* context) {
  grpc_call_cancel_with_status(context->c_call(), static_cast<grpc_status_code>(why.code()),
                               std::string(why.message()).c_str(), nullptr);
}

absl::string_view HeaderOf(const grpc::ServerContext& context, absl::string_view name) {
  const auto& headers = context.client_metadata();
  const auto found = headers.find(grpc::string_ref(name.data(), name.size()));
  if (found == headers.end()) return "";
  return {found->second.data(), found->second.size()};
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
  Begin(Steady(absl::FromChrono(context_.deadline())));
  Leave();
  Await(method);
}

void UnaryCall::Deliver(const absl::Status& status) {
  if (status.ok()) AwaitReader();
  FinishCall([this, &status] { return ToGrpcStatus(Told(status)); },
             [this](const grpc::Status& told) {
               if (told.ok()) {
                 writer_.Finish(response_, told, written_.tag());
               } else {
                 writer_.FinishWithError(told, written_.tag());
               }
             });
}

void UnaryCall::TellRetry(absl::Duration pause) {
  context_.AddTrailingMetadata("grpc-retry-pushback-ms",
                               absl::StrCat(absl::ToInt64Milliseconds(pause)));
}

void UnaryCall::Over(bool) {
  if (context_.IsCancelled()) GiveUp();
  Leave();
}

void UnaryCall::Finished(bool ok) {
  Written(ok);
  Leave();
}

void UnaryCall::Leave() {
  if (present_.fetch_sub(1) > 1) return;
  UnaryMethod* const method = method_;
  delete this;
  Await(method);
}

}  // namespace tilewire::service
