// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/rpc_call.h"

#include <chrono>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

grpc::ServerUnaryReactor* RpcCall::Answer(grpc::CallbackServerContext* context,
                                          const absl::Status& status) {
  auto* call = new RpcCall(context);
  call->End(status);
  return call;
}

absl::Status RpcCall::Interrupted() const {
  // The deadline first: gRPC cancels a call whose deadline has passed.
  if (std::chrono::system_clock::now() >= context_->deadline()) {
    return absl::DeadlineExceededError("the deadline passed; no more work was done");
  }
  if (cancelled_.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
  return absl::OkStatus();
}

RunOptions RpcCall::LimitsOfWork(int64_t max_output_bytes) const {
  return {.interrupted = [this] { return Interrupted(); },
          .stop = &cancelled_,
          .max_output_bytes = max_output_bytes};
}

void RpcCall::End(const absl::Status& status) { Finish(ToGrpcStatus(status)); }

void RpcCall::Refuse(const absl::Status& status, const Scheduler& scheduler) {
  if (!scheduler.draining()) {
    context_->AddTrailingMetadata("grpc-retry-pushback-ms",
                                  absl::StrCat(absl::ToInt64Milliseconds(scheduler.Pushback())));
  }
  End(status);
}

}  // namespace tilewire::service
