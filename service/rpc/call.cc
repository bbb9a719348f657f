// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/call.h"

#include <algorithm>
#include <random>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "service/observe/steady_time.h"
#include "service/observe/trace_context.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

namespace {

// Longer ids are cut where they are logged.
constexpr size_t kMostOfAnId = 128;

// An id that is unique within this process, and most likely among all of them.
FlightId MadeId() {
  static const uint64_t process = std::random_device()();
  static std::atomic<uint64_t> made{0};
  FlightId id = {};
  absl::SNPrintF(id.data(), id.size(), "%08x-%x", process,
                 made.fetch_add(1, std::memory_order_relaxed));
  return id;
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

void Call::Begin(absl::Time deadline) {
  if (Serve(deadline) && before_cancel_.fetch_sub(1) == 1) Cancel();
}

// Judges the request and makes its job.
absl::Status Call::Open() {
  ABSL_RETURN_IF_ERROR(
      RefuseAs(RequestRefusal::kRight, CheckRight(method_.rpc, method_.right, host_.open_rights)));
  ABSL_RETURN_IF_ERROR(
      RefuseAs(RequestRefusal::kTooLarge,
               CheckRequestBytes(method_, RequestBytes(), host_.max_message_bytes)));
  ABSL_RETURN_IF_ERROR(Receive(&ticket_, MostRequestBytes(method_, host_.max_message_bytes)));
  ABSL_ASSIGN_OR_RETURN(job_, MakeJob());
  return absl::OkStatus();
}

// Whether the dispatcher has it.
bool Call::Serve(absl::Time deadline) {
  times_.arrival = SteadyNow();
  deadline_ = deadline;
  absl::Status status = WithoutExceptions([this] { return Open(); });
  if (!status.ok() || job_ == nullptr) {
    End(status);
    return false;
  }
  WithoutExceptions([this] {
    BeginTrace();
    return absl::OkStatus();
  }).IgnoreError();
  WorkTerms terms;
  status = WithoutExceptions([&] { return Prepare(&terms); });
  set_terms(std::move(terms));
  if (status.ok() && job_->IsAwaited()) {
    AwaitJob();
    return false;
  }
  // Another thread may run the call to its end from here on, but not free it while Begin() runs.
  if (status.ok()) status = WithoutExceptions([this] { return host_.dispatcher->Submit(this); });
  if (status.ok()) return true;
  if (absl::IsUnavailable(status)) AddPushback();
  End(status);
  return false;
}

// Whether or not its client gives up, the call lives until the job is done.
void Call::AwaitJob() {
  times_.start = SteadyNow();
  job_->Start([this](const absl::Status& done) { Complete(done); });
}

absl::Status Call::Prepare(WorkTerms* terms) {
  terms->deadline = deadline_;
  terms->ticket = &ticket_;
  const int64_t uncharged = std::max<int64_t>(0, RequestBytes() - ticket_.bytes());
  ABSL_RETURN_IF_ERROR(ticket_.Charge(uncharged, "a request"));
  return job_->Prepare(terms);
}

// Without memory for it, the client decides when it tries again.
void Call::AddPushback() {
  WithoutExceptions([this] {
    TellRetry(host_.dispatcher->RetryAfter(terms().model));
    return absl::OkStatus();
  }).IgnoreError();
}

absl::Status Call::Interrupted() const {
  if (terms().work_class == WorkClass::kBackground) host_.dispatcher->RunWaiting();
  // The deadline first: a protocol may cancel a call whose deadline has passed.
  if (SteadyNow() >= terms().deadline) {
    return absl::DeadlineExceededError("the deadline passed; no more work was done");
  }
  if (stopped_.load(std::memory_order_relaxed)) return absl::CancelledError("cancelled");
  return absl::OkStatus();
}

RunOptions Call::LimitsOfWork() {
  return {.interrupted = [this] { return Interrupted(); },
          .stop = &stopped_,
          .max_output_bytes = host_.max_message_bytes,
          .reserve = [this](int64_t bytes) { return ChargeWork(bytes); },
          .allocate_output = [this](size_t bytes) { return host_.answers->Take(bytes); },
          .serial = lane_ == Lane::kExpress,
          .longest_steps = longest_steps_.get()};
}

// The engine asks for memory when it has the plan.
absl::Status Call::ChargeWork(int64_t bytes) {
  if (times_.plan == absl::InfinitePast()) times_.plan = SteadyNow();
  host_.dispatcher->Prepared(this);
  return ticket_.ChargeRun(bytes, "the tensors of a request");
}

absl::Status Call::ChargeAnswer() {
  const int64_t bytes = AnswerBytes();
  if (bytes > host_.max_message_bytes) {
    return absl::ResourceExhaustedError(absl::StrCat("an answer of ", bytes, " bytes; at most ",
                                                     host_.max_message_bytes,
                                                     " (--max_message_mb)"));
  }
  return ticket_.ChangeTo(bytes, "an answer");
}

absl::Status Call::RefuseAs(RequestRefusal reason, const absl::Status& status) {
  if (!status.ok()) set_refusal(reason);
  return status;
}

// Once, at the end of the work; a request of inference without a job named no model yet.
void Call::Account(const absl::Status& status) {
  if (times_.end != absl::InfinitePast()) return;
  times_.end = SteadyNow();
  const RequestRefusal why = refusal() != RequestRefusal::kNone ? refusal() : ticket_.refusal();
  if (job_ == nullptr) {
    if (method_.right == Right::kInfer) host_.unnamed->Count(status.code(), why);
    return;
  }
  if (!status.ok()) failed_id_ = std::string(job_->RequestId());
  BeginRecord(status);
  answered_ = job_->Account(times_, status, why, &record_);
  job_ = nullptr;
}

// Without what the job knows: decoding is a part of the queue's time, and encoding of the run's.
void Call::BeginRecord(const absl::Status& status) {
  has_record_ = true;
  const auto ns = [](absl::Duration time) { return absl::ToInt64Nanoseconds(time); };
  const bool ran = times_.start != absl::InfinitePast();
  const bool planned = times_.plan != absl::InfinitePast();
  record_.arrival_ns = absl::ToUnixNanos(times_.arrival);
  record_.queue_ns = ns((ran ? times_.start : times_.end) - times_.arrival);
  if (planned) record_.plan_ns = ns(times_.plan - times_.start);
  if (ran) record_.run_ns = ns(times_.end - times_.start) - record_.plan_ns;
  const bool serial = ran && (lane_ == Lane::kExpress || host_.dispatcher->threads() == 1);
  if (cores_ != nullptr) record_.core_ns = ns((times_.end - times_.start) * cores_->Cores());
  record_.plan_key = terms().cost_key;
  record_.code = static_cast<uint8_t>(status.code());
  record_.flags = (waited_for_another() ? FlightRecord::kWaitedForPlan : 0) |
                  (makes_for_others() ? FlightRecord::kMadePlan : 0) |
                  (serial ? FlightRecord::kRanSerially : 0);
  record_id_ = FlightIdOf(job_->RequestId());
  if (!is_traced_) return;
  WithoutExceptions([this] {
    if (TextOf(record_id_).empty()) record_id_ = FlightIdOf(Header("x-request-id"));
    if (TextOf(record_id_).empty()) record_id_ = MadeId();
    return absl::OkStatus();
  }).IgnoreError();
}

// Whether it is traced, and as a part of which trace.
void Call::BeginTrace() {
  const bool may_trace = host_.tracer != nullptr && method_.right == Right::kInfer;
  if (!may_trace || !host_.tracer->sampler().IsOn()) return;
  const TraceContext context = ParseTraceParent(Header("traceparent"));
  if (!host_.tracer->sampler().Take(context.sampled)) return;
  ReadHexDigits(context.trace_id, absl::MakeSpan(trace_id_));
  ReadHexDigits(context.parent_id, absl::MakeSpan(parent_id_));
  if (context.trace_id.empty()) trace_id_ = MadeTraceId();
  longest_steps_ = std::make_unique<LongestSteps>();
  is_traced_ = true;
}

// Once, when its answer has left or never will.
void Call::Record() {
  if (!std::exchange(has_record_, false)) return;
  if (is_traced_) {
    host_.tracer->Add({.record = record_,
                       .id = record_id_,
                       .trace_id = trace_id_,
                       .parent_id = parent_id_,
                       .longest_steps = *longest_steps_});
  }
  if (host_.flights == nullptr) return;
  WithoutExceptions([this] {
    host_.flights->Add(record_, TextOf(record_id_));
    return absl::OkStatus();
  }).IgnoreError();
}

// The job's answer, unless what came `before` it failed.
absl::Status Call::RunJob(const absl::Status& before) {
  absl::Status status = before;
  if (status.ok()) status = job_->Run(*this);
  if (status.ok()) status = ChargeAnswer();
  // Their memory is free before a slow client has read its answer.
  Account(status);
  ForgetRequest();
  if (!status.ok()) ticket_.GiveBack(ticket_.bytes());
  return status;
}

void Call::Complete(const absl::Status& before) {
  const absl::Status status = WithoutExceptions([&] { return RunJob(before); });
  if (!status.ok()) ForgetAnswer();
  End(status);
}

void Call::Run(Lane lane) {
  lane_ = lane;
  const threading::CoreTime cores;
  cores_ = &cores;
  times_.start = SteadyNow();
  Complete(WithoutExceptions([this] { return Interrupted(); }));
}

void Call::End(const absl::Status& status) {
  Account(status);
  Deliver(status);
}

// The id is the request's own, else a header's, else one that is made for the line.
RequestOrigin Call::Origin() const {
  RequestOrigin origin = {.peer = Peer()};
  origin.id = failed_id_.empty() ? std::string(TextOf(record_id_)) : failed_id_;
  if (origin.id.empty()) origin.id = std::string(Header("x-request-id"));
  if (origin.id.empty()) origin.id = std::string(TextOf(MadeId()));
  if (origin.id.size() > kMostOfAnId) origin.id.resize(kMostOfAnId);
  origin.trace_id = std::string(ParseTraceParent(Header("traceparent")).trace_id);
  if (is_traced_) {
    origin.trace_id =
        absl::BytesToHexString({reinterpret_cast<const char*>(trace_id_.data()), trace_id_.size()});
  }
  return origin;
}

absl::Status Call::Told(const absl::Status& status) {
  const absl::Time now = times_.end != absl::InfinitePast() ? times_.end : SteadyNow();
  const bool ran = times_.start != absl::InfinitePast();
  const bool is_our_limit =
      terms().limit != nullptr && absl::IsDeadlineExceeded(status) && terms().deadline < deadline_;
  absl::Status told = is_our_limit ? absl::DeadlineExceededError(terms().limit) : status;
  host_.log->Ended({.method = method_.rpc,
                    .model = terms().model,
                    .status = &told,
                    .origin = [this] { return Origin(); },
                    .waited = (ran ? times_.start : now) - times_.arrival,
                    .ran = ran ? now - times_.start : absl::ZeroDuration()});
  return told;
}

void Call::AwaitReader() { host_.unread->Add(this, AnswerBytes()); }

void Call::Written(bool ok) {
  const absl::Duration writing = SteadyNow() - times_.end;
  record_.write_ns = absl::ToInt64Nanoseconds(writing);
  if (answered_ != nullptr) answered_->Wrote(writing);
  Record();
  const absl::Status ended = host_.unread->Remove(this, ok);
  if (!ended.ok()) LogUnread(ended);
}

void Call::LogUnread(const absl::Status& why) {
  host_.log->EndedUnread(
      {.method = method_.rpc, .model = terms().model, .status = &why, .origin = [this] {
         return Origin();
       }});
}

void Call::EndUnread(const absl::Status& why) {
  LogUnread(why);
  Cut(why);
}

void Call::GiveUp() {
  stopped_.store(true, std::memory_order_relaxed);
  if (before_cancel_.fetch_sub(1) == 1) Cancel();
}

void Call::Cancel() {
  if (!host_.dispatcher->Withdraw(this)) return;
  End(SteadyNow() >= deadline_
          ? absl::DeadlineExceededError("the deadline passed while the request waited")
          : absl::CancelledError("cancelled"));
}

}  // namespace tilewire::service
