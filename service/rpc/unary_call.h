// SPDX-License-Identifier: Apache-2.0
//
// One unary RPC from its arrival to its answer: prepared on gRPC's thread (where a bad request is
// answered), admitted with a ticket for its bytes, run when the dispatcher reaches it, ended early
// when its client gives up, and accounted for until gRPC is done with it. It then deletes itself.
#ifndef SERVICE_RPC_UNARY_CALL_H_
#define SERVICE_RPC_UNARY_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/model.h"
#include "grpcpp/grpcpp.h"
#include "service/rpc/call_host.h"
#include "service/schedule/admission.h"
#include "service/schedule/work.h"

namespace tilewire::service {

class UnaryCall;

// The one place where running out of memory is caught: all that a request does passes through it.
template <typename Body>
absl::Status WithoutExceptions(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return absl::ResourceExhaustedError(
        "the system gives the server no memory for this request: a lower --max_work_mb refuses "
        "earlier, a smaller batch takes less");
  }
}

// What one method does with one request.
class Job {
 public:
  virtual ~Job() = default;
  // On gRPC's thread: decodes, judges, and says what the scheduler has to know. May not compute.
  virtual absl::Status Prepare(WorkTerms* terms) = 0;
  // See Work::Operations(); after Prepare().
  virtual std::optional<int64_t> Operations() const { return 0; }
  // On a thread that computes. `call` gives the limits of the work.
  virtual absl::Status Run(UnaryCall& call) = 0;
  // Its owner needs it no more. A job that serves one call after the other is kept here.
  virtual void Release() { delete this; }
};

struct ReleaseJob {
  void operator()(Job* job) const { job->Release(); }
};
using OwnedJob = std::unique_ptr<Job, ReleaseJob>;

// Thread-safe. Always created with Start() or Answer(). The memory of calls that have ended serves
// the next ones.
class UnaryCall final : public grpc::ServerUnaryReactor, private Work {
 public:
  // `method` is a literal. `request` and `response` live until gRPC is done.
  static grpc::ServerUnaryReactor* Start(grpc::CallbackServerContext* context, const CallHost& host,
                                         const char* method, const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response, OwnedJob job);

  // Answers at once.
  static grpc::ServerUnaryReactor* Answer(grpc::CallbackServerContext* context,
                                          const CallHost& host, const char* method,
                                          const absl::Status& status);

  static void* operator new(size_t size);
  static void operator delete(void* memory);

  // kCancelled if the client gave up, kDeadlineExceeded if its time is over. Between steps of
  // background work, also the place where waiting requests are served.
  absl::Status Interrupted() const;

  // Ends work for this call early when Interrupted(), charges what it allocates to the call's
  // ticket, and refuses answers that no message may hold. Valid as long as the call.
  RunOptions LimitsOfWork();

 private:
  UnaryCall(grpc::CallbackServerContext* context, const CallHost& host, const char* method);

  void Admit(const grpc::ByteBuffer& request);
  void Run(Lane lane) override;
  void End(const absl::Status& status) override;
  std::optional<int64_t> Operations() const override { return job_->Operations(); }
  absl::Status RunJob();
  absl::Status ChargeWork(int64_t bytes);
  void OnCancel() override;
  void OnDone() override;

  grpc::CallbackServerContext* const context_;
  const CallHost& host_;
  const char* const method_;
  const absl::Time arrival_, deadline_;
  absl::Time start_ = absl::InfinitePast();
  OwnedJob job_;
  grpc::ByteBuffer* response_ = nullptr;
  Ticket ticket_;
  Lane lane_ = Lane::kArena;
  int64_t work_bytes_ = 0;
  std::shared_ptr<WriteDeadlines::Write> write_;
  std::atomic<bool> stopped_{false};  // the client gave up, or its time is over
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNARY_CALL_H_
