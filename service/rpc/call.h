// SPDX-License-Identifier: Apache-2.0
//
// One request from its arrival to the end of its answer, whatever protocol brought it: judged by
// the table of methods and prepared on the thread that received it (where a bad request is
// answered), admitted with a ticket for its bytes, run when the dispatcher reaches it, ended early
// when its client gives up, and accounted for until its answer has left. Each protocol has a
// subclass that reads requests and writes answers.
#ifndef SERVICE_RPC_CALL_H_
#define SERVICE_RPC_CALL_H_

#include <atomic>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/longest_steps.h"
#include "engine/model.h"
#include "engine/threading/core_time.h"
#include "service/front/method_table.h"
#include "service/observe/flight_record.h"
#include "service/observe/request_log.h"
#include "service/observe/trace_context.h"
#include "service/rpc/call_host.h"
#include "service/rpc/job.h"
#include "service/rpc/unread_answers.h"
#include "service/schedule/admission.h"
#include "service/schedule/work.h"

namespace tilewire::service {

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

// Thread-safe. Alive until Deliver() has been called and Begin() has returned.
class Call : private Work, private UnreadAnswer {
 public:
  // kCancelled if the client gave up, kDeadlineExceeded if its time is over. Between steps of
  // background work, also the place where waiting requests are served.
  absl::Status Interrupted() const;

  // Ends work for this call early when Interrupted(), charges what it allocates to the call's
  // ticket, and refuses answers that no message may hold. Valid as long as the call.
  RunOptions LimitsOfWork();

  // Who sent the request, for a line of the log.
  RequestOrigin Origin() const;

 protected:
  Call(const Method& method, const CallHost& host)
      : method_(method), host_(host), ticket_(host.admission) {}
  ~Call() override { Record(); }

  const Method& method() const { return method_; }
  const CallHost& host() const { return host_; }

  // The request has arrived, and its client waits until `deadline`. Deliver() is called once, here
  // or on another thread.
  void Begin(absl::Time deadline);
  // The client gave up, or its time is over; perhaps while Begin() runs.
  void GiveUp();
  // Counts and logs the call. Returns the status that the client gets. Once.
  absl::Status Told(const absl::Status& status);
  // The answer is about to be written: from now on it may be ended, by Cut(), until Written().
  void AwaitReader();
  // The answer has been written, or never will be.
  void Written(bool ok);
  // The request's id, if it failed after it was decoded; else empty.
  const std::string& failed_id() const { return failed_id_; }

  // The protocol's end. The bytes of the request, decompressed, which are charged to `ticket`.
  //   the errors of Ticket::Charge(); kInvalidArgument: larger than `most`
  virtual absl::Status Receive(Ticket* ticket, int64_t most) = 0;
  virtual int64_t RequestBytes() const = 0;
  // Makes the job. Without a job the answer is there.
  virtual absl::StatusOr<OwnedJob> MakeJob() = 0;
  virtual void ForgetRequest() = 0;
  virtual int64_t AnswerBytes() const = 0;
  virtual void ForgetAnswer() = 0;
  // Writes the answer, or the status. May end the call.
  virtual void Deliver(const absl::Status& status) = 0;
  // The client, which is refused, may try again after `pause`. May be left out.
  virtual void TellRetry(absl::Duration pause) = 0;
  // Ends the answer that is being written. Quick: a lock is held.
  virtual void Cut(const absl::Status& why) = 0;
  virtual std::string Peer() const = 0;
  // The header of the client with this name, which is in lower case; empty: there is none. Valid as
  // long as the call.
  virtual absl::string_view Header(absl::string_view name) const = 0;

 private:
  bool Serve(absl::Time deadline);
  absl::Status Open();
  absl::Status Prepare(WorkTerms* terms);
  void AwaitJob();
  void Cancel();
  absl::Status RunJob(const absl::Status& before);
  void Complete(const absl::Status& before);
  absl::Status ChargeWork(int64_t bytes);
  absl::Status ChargeAnswer();
  // `status`, after marking the call as refused if it is not OK.
  absl::Status RefuseAs(RequestRefusal reason, const absl::Status& status);
  void Account(const absl::Status& status);
  void BeginRecord(const absl::Status& status);
  void BeginTrace();
  void Record();
  void AddPushback();
  void LogUnread(const absl::Status& why);

  void Run(Lane lane) override;
  void End(const absl::Status& status) override;
  void EndUnread(const absl::Status& why) override;
  std::optional<int64_t> Operations() const override { return job_->Operations(); }

  const Method& method_;
  const CallHost& host_;
  std::atomic<int> before_cancel_{2};  // it waits to be run, and the client gave up
  absl::Time deadline_;
  CallTimes times_;
  FlightRecord record_;  // of a call with a job that has ended, until it is kept
  bool has_record_ = false;
  const threading::CoreTime* cores_ = nullptr;   // while it runs
  std::shared_ptr<VersionStatistics> answered_;  // is told when the answer has been written
  FlightId record_id_ = {};
  bool is_traced_ = false;
  std::unique_ptr<LongestSteps> longest_steps_;  // of its run, if it is traced
  TraceId trace_id_ = {};
  SpanId parent_id_ = {};
  OwnedJob job_;
  std::string failed_id_;
  Ticket ticket_;
  Lane lane_ = Lane::kArena;
  std::atomic<bool> stopped_{false};  // the client gave up, or its time is over
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_CALL_H_
