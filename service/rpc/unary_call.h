// SPDX-License-Identifier: Apache-2.0
//
// One unary RPC from its arrival to its answer: prepared on the thread that received it (where a
// bad request is answered), admitted with a ticket for its bytes, run when the dispatcher reaches
// it, ended early when its client gives up, and accounted for until gRPC is done with it. It then
// deletes itself.
#ifndef SERVICE_RPC_UNARY_CALL_H_
#define SERVICE_RPC_UNARY_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/model.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/async_unary_call.h"
#include "service/front/call_queue.h"
#include "service/rpc/call_host.h"
#include "service/rpc/unread_answers.h"
#include "service/schedule/admission.h"
#include "service/schedule/work.h"

namespace tilewire::service {

class UnaryCall;

// kResourceExhausted; without words where there is no memory for them.
absl::Status OutOfMemory();

// The one place where running out of memory is caught: all that a request does passes through it.
template <typename Body>
absl::Status WithoutExceptions(Body body) {
  try {
    return body();
  } catch (const std::bad_alloc&) {
    return OutOfMemory();
  }
}

// One request of one method, from decoding to the answer.
class Job {
 public:
  virtual ~Job() = default;
  // On the thread that received it: decodes, judges, and says what the scheduler has to know. May
  // not compute.
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

// A method of a service. Outlives its calls.
struct UnaryMethod {
  using Writer = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

  const char* name = nullptr;  // a literal
  // Asks gRPC for the method's next call.
  std::function<void(grpc::ServerContext* context, grpc::ByteBuffer* request, Writer* writer,
                     grpc::ServerCompletionQueue* queue, Event* arrived)>
      ask;
  // Makes the job of a call that has arrived. Without a job, `response` is the answer or the status
  // the error. `request` and `response` live as long as the job, which alone may use them.
  std::function<absl::StatusOr<OwnedJob>(const grpc::ByteBuffer& request,
                                         grpc::ByteBuffer* response)>
      serve;
  const CallHost* host = nullptr;
  CallQueue* queue = nullptr;
  std::atomic<int> asked{0};  // calls that gRPC was asked for and that have not arrived
};

// Thread-safe. The memory of calls that have ended serves the next ones.
class UnaryCall final : private Work, private UnreadAnswer {
 public:
  // Asks for the method's next calls, as far as gRPC does not await them yet.
  static void Await(UnaryMethod* method);

  static void* operator new(size_t size);
  static void operator delete(void* memory);

  // kCancelled if the client gave up, kDeadlineExceeded if its time is over. Between steps of
  // background work, also the place where waiting requests are served.
  absl::Status Interrupted() const;

  // Ends work for this call early when Interrupted(), charges what it allocates to the call's
  // ticket, and refuses answers that no message may hold. Valid as long as the call.
  RunOptions LimitsOfWork();

  // For CallQueue::AskFor().
  void Ask(grpc::ServerCompletionQueue* queue);

 private:
  explicit UnaryCall(UnaryMethod* method)
      : method_(method), host_(*method->host), ticket_(host_.admission) {}

  void Arrived(bool ok);
  void Written(bool ok);
  void Over(bool);
  bool Serve();
  absl::Status Prepare(WorkTerms* terms);
  bool Admit();
  void Cancel();
  void Leave();

  void Run(Lane lane) override;
  void End(const absl::Status& status) override;
  void EndUnread(const absl::Status& why) override;
  void LogUnread(const absl::Status& why);
  grpc::Status Logged(const absl::Status& status);
  void AddPushback();
  std::optional<int64_t> Operations() const override { return job_->Operations(); }
  absl::Status RunJob();
  absl::Status ChargeWork(int64_t bytes);
  absl::Status ChargeAnswer();

  UnaryMethod* const method_;
  const CallHost& host_;
  grpc::ServerContext context_;
  UnaryMethod::Writer writer_{&context_};
  grpc::ByteBuffer request_, response_;
  EventOf<UnaryCall, &UnaryCall::Arrived> arrived_{this};
  EventOf<UnaryCall, &UnaryCall::Written> written_{this};
  EventOf<UnaryCall, &UnaryCall::Over> over_{this};  // also when the client has given up
  std::atomic<int> present_{3};                      // who uses the call: these three
  std::atomic<int> before_cancel_{2};                // it waits to be run, and the client gave up
  absl::Time arrival_, deadline_;
  absl::Time start_ = absl::InfinitePast();
  OwnedJob job_;
  Ticket ticket_;
  Lane lane_ = Lane::kArena;
  std::atomic<bool> stopped_{false};  // the client gave up, or its time is over
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNARY_CALL_H_
