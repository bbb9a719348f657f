// SPDX-License-Identifier: Apache-2.0
//
// One unary RPC from its arrival to its answer. Deletes itself when gRPC is done with it.
#ifndef SERVICE_RPC_RPC_CALL_H_
#define SERVICE_RPC_RPC_CALL_H_

#include <atomic>
#include <utility>

#include "absl/status/status.h"
#include "engine/engine.h"
#include "grpcpp/grpcpp.h"
#include "service/schedule/scheduler.h"

namespace tilewire::service {

// Thread-safe. Always created with Start() or Answer().
class RpcCall final : public grpc::ServerUnaryReactor {
 public:
  // Runs `work(call)`, which returns the RPC's status, when the scheduler's turn comes; refuses it,
  // with the time after which to try again, where the queue is full. What `work` refers to lives
  // until gRPC is done.
  template <typename Work>
  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context, Scheduler* scheduler,
                                         Work work) {
    auto* call = new RpcCall(context);
    const absl::Status admitted = scheduler->Submit([call, work = std::move(work)]() mutable {
      absl::Status status = call->Interrupted();
      if (status.ok()) status = work(*call);
      call->End(status);
    });
    if (!admitted.ok()) call->Refuse(admitted, *scheduler);
    return call;
  }

  // Answers at once.
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const absl::Status& status);

  // kCancelled if the client gave up, kDeadlineExceeded if its time is over.
  absl::Status Interrupted() const;

  // Ends work for this call early when Interrupted(), and refuses answers beyond
  // `max_output_bytes`. Valid as long as the call.
  RunOptions LimitsOfWork(int64_t max_output_bytes) const;

 private:
  explicit RpcCall(grpc::CallbackServerContext* context) : context_(context) {}

  void End(const absl::Status& status);
  void Refuse(const absl::Status& status, const Scheduler& scheduler);
  void OnCancel() override { cancelled_.store(true, std::memory_order_relaxed); }
  void OnDone() override { delete this; }

  grpc::CallbackServerContext* const context_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_RPC_CALL_H_
