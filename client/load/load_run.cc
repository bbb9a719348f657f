// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_run.h"

#include <algorithm>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "client/amount_text.h"

namespace tilewire::client {
namespace {

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";
constexpr absl::Duration kMoment = absl::Milliseconds(100);
// A server that refuses everything is not asked a million times.
constexpr int64_t kMostErrorsAtFirst = 100;
// Neither is one that is gone: a caller's pause doubles from try to try.
constexpr absl::Duration kFirstRetreat = absl::Milliseconds(10);
constexpr absl::Duration kLongestRetreat = absl::Seconds(1);

// The pause that the server asks for before the next request; zero if it does not say.
absl::Duration PushbackOf(const grpc::ClientContext& context) {
  const auto& metadata = context.GetServerTrailingMetadata();
  const auto found = metadata.find("grpc-retry-pushback-ms");
  int64_t ms = 0;
  if (found == metadata.end() ||
      !absl::SimpleAtoi(absl::string_view(found->second.data(), found->second.size()), &ms)) {
    return absl::ZeroDuration();
  }
  return absl::Milliseconds(std::clamp<int64_t>(ms, 0, 60'000));
}

absl::Time EndOf(const LoadOptions& options, absl::Time counted_from) {
  return options.requests > 0 ? absl::InfiniteFuture() : counted_from + options.duration;
}

}  // namespace

struct LoadRun::Call {
  size_t connection = 0, request = 0;
  Outcome outcome;
  absl::Duration pushback;
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

LoadRun::LoadRun(const LoadOptions& options, const std::vector<std::unique_ptr<Client>>& clients,
                 RequestMix* mix, AnswerCheck* check)
    : options_(options),
      mix_(mix),
      check_(check),
      start_(absl::Now()),
      counted_from_(start_ + options.warm_up),
      end_(EndOf(options, counted_from_)),
      retreats_(clients.size()),
      think_(options.think, options.think_kind, options.seed),
      tally_(options, counted_from_) {
  for (const auto& client : clients)
    stubs_.push_back(std::make_unique<grpc::GenericStub>(client->channel()));
  for (int i = 0; i < options.threads; ++i)
    answers_.push_back(std::make_unique<grpc::CompletionQueue>());
}

LoadReport LoadRun::Run(const LoadProgress& progress) {
  const bool open = options_.is_open();
  {
    absl::MutexLock lock(&mutex_);
    pacing_ = open;
    live_callers_ = open ? 0 : stubs_.size();
  }
  std::vector<std::thread> threads;
  for (const auto& answers : answers_)
    threads.emplace_back([this, queue = answers.get()] { CollectAnswers(queue); });
  std::thread pacer([this, open] { open ? PaceOpenLoop() : PaceCallers(); });
  for (size_t caller = 0; !open && caller < stubs_.size(); ++caller) SendFirst(caller);
  while (!Finished()) {
    if (const std::string why = WhyToStop(); !why.empty()) Stop(why);
    absl::ReleasableMutexLock lock(&mutex_);
    const LoadReport so_far = tally_.SoFar(absl::Now(), outstanding_.size());
    lock.Release();
    progress(so_far);
  }
  Stop("");
  pacer.join();
  for (const auto& answers : answers_) answers->Shutdown();
  for (std::thread& thread : threads) thread.join();
  absl::MutexLock lock(&mutex_);
  return tally_.Finish();
}

void LoadRun::PaceOpenLoop() {
  Arrivals arrivals(options_.profile.After(options_.warm_up), options_.arrivals, options_.seed);
  size_t connection = 0;
  for (absl::Time due = start_ + arrivals.Next(); due < end_; due = start_ + arrivals.Next()) {
    SleepUntil(due);
    if (Send(connection++ % stubs_.size(), due)) continue;
    absl::MutexLock lock(&mutex_);
    if (IsOver(due)) break;
  }
  absl::MutexLock lock(&mutex_);
  pacing_ = false;
  if (AllAnswered()) ended_.Signal();
}

void LoadRun::PaceCallers() {
  for (;;) {
    Due next;
    {
      absl::MutexLock lock(&mutex_);
      while (!stopped_ && pausing_.empty()) repace_.Wait(&mutex_);
      if (stopped_) return;
      next = pausing_.top();
      if (absl::Now() < next.first && !IsOver(next.first)) {
        repace_.WaitWithDeadline(&mutex_, next.first);
        continue;
      }
      pausing_.pop();
    }
    SendOrLeave(next.second, next.first);
  }
}

void LoadRun::SleepUntil(absl::Time time) {
  absl::Duration left = time - absl::Now();
  while (left > absl::ZeroDuration()) {
    absl::SleepFor(std::min(left, kMoment));
    left = time - absl::Now();
    if (left <= absl::ZeroDuration()) return;
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
  }
}

bool LoadRun::Admit(Call* call) {
  const absl::Time due = call->outcome.due;
  absl::MutexLock lock(&mutex_);
  if (IsOver(due)) return false;
  if (options_.is_open() && outstanding_.size() >= static_cast<size_t>(options_.max_waiting)) {
    if (due >= counted_from_) tally_.CountUnsent();
    return false;
  }
  // Callers that pause after the last request have none to wait for.
  if (due >= counted_from_ && ++issued_ == options_.requests) repace_.Signal();
  call->request = mix_->Next();
  outstanding_.insert(call);
  return true;
}

bool LoadRun::IsOver(absl::Time due) const {
  const bool all_issued = options_.requests > 0 && issued_ >= options_.requests;
  return stopped_ || due >= end_ || (all_issued && due >= counted_from_);
}

bool LoadRun::Send(size_t connection, absl::Time due) {
  auto owned = std::make_unique<Call>();
  owned->connection = connection;
  owned->outcome.due = due;
  if (!Admit(owned.get())) return false;
  Call* const call = owned.release();  // of the collector, from here on
  const RequestMix::Request& request = mix_->requests()[call->request];
  call->outcome.part = request.part;
  call->outcome.sent = absl::Now();
  if (request.deadline != absl::InfiniteDuration())
    call->context.set_deadline(absl::ToChronoTime(call->outcome.sent + request.deadline));
  call->reader = stubs_[connection]->PrepareUnaryCall(&call->context, kMethod, request.bytes,
                                                      answers_[connection % answers_.size()].get());
  call->reader->StartCall();
  call->reader->Finish(&call->answer, &call->status, call);
  return true;
}

void LoadRun::CollectAnswers(grpc::CompletionQueue* answers) {
  void* tag = nullptr;
  bool ok = false;
  while (answers->Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    Outcome& outcome = call->outcome;
    outcome.answered = absl::Now();
    if (call->status.ok()) {
      outcome.difference = check_->Differs(call->request, call->answer);
      if (options_.split) outcome.split = SplitOf(call->answer);
    } else {
      outcome.status = absl::Status(static_cast<absl::StatusCode>(call->status.error_code()),
                                    call->status.error_message());
      call->pushback = PushbackOf(call->context);
      outcome.was_pushed_back = call->pushback > absl::ZeroDuration();
    }
    if (!options_.is_open()) SendNext(*call);
    Count(call.get());
  }
}

void LoadRun::SendNext(const Call& last) {
  const absl::Duration pause = std::max(last.pushback, RetreatAfter(last));
  const absl::Time now = absl::Now();
  if (pause == absl::ZeroDuration() && options_.think == absl::ZeroDuration())
    return SendOrLeave(last.connection, now);
  absl::MutexLock lock(&mutex_);
  SendLater(last.connection, now + std::max(pause, think_.Next()));
}

absl::Duration LoadRun::RetreatAfter(const Call& last) {
  absl::Duration& retreat = retreats_[last.connection];
  const bool is_gone = last.outcome.status.code() == absl::StatusCode::kUnavailable &&
                       last.pushback == absl::ZeroDuration();
  retreat =
      is_gone ? std::clamp(2 * retreat, kFirstRetreat, kLongestRetreat) : absl::ZeroDuration();
  return retreat;
}

void LoadRun::SendFirst(size_t caller) {
  if (options_.think == absl::ZeroDuration()) return SendOrLeave(caller, start_);
  absl::MutexLock lock(&mutex_);
  SendLater(caller, start_ + think_.First());
}

void LoadRun::SendLater(size_t caller, absl::Time due) {
  pausing_.emplace(due, caller);
  if (pausing_.top() == Due(due, caller)) repace_.Signal();
}

void LoadRun::SendOrLeave(size_t caller, absl::Time due) {
  if (Send(caller, due)) return;
  absl::MutexLock lock(&mutex_);
  --live_callers_;
  if (AllAnswered()) ended_.Signal();
}

void LoadRun::Count(Call* call) {
  absl::MutexLock lock(&mutex_);
  outstanding_.erase(call);
  if (AllAnswered()) ended_.Signal();
  const Outcome& outcome = call->outcome;
  const bool broken_off = stopped_ && outcome.status.code() == absl::StatusCode::kCancelled;
  if (outcome.due < counted_from_ || broken_off) return;
  tally_.Count(outcome, outstanding_.size());
  if (!options_.is_open() && tally_.answered() == 0 && tally_.errors() >= kMostErrorsAtFirst) {
    stopped_ = true;
    tally_.EndEarly(absl::StrCat("its first ", kMostErrorsAtFirst, " requests all failed"),
                    absl::Now(), outstanding_.size());
  }
}

void LoadRun::Stop(absl::string_view because) {
  absl::MutexLock lock(&mutex_);
  const bool cuts_short = pacing_ || live_callers_ > 0 || !outstanding_.empty();
  if (cuts_short && !because.empty()) tally_.EndEarly(because, absl::Now(), outstanding_.size());
  stopped_ = true;
  repace_.Signal();
  for (Call* call : outstanding_) call->context.TryCancel();
}

std::string LoadRun::WhyToStop() {
  if (options_.stop != nullptr && options_.stop->load()) return "it was told to stop";
  if (!TooSlow()) return "";
  return absl::StrCat("more than ", CountText(options_.most_over_bound, "request"),
                      " took longer than ", LatencyText(options_.latency_bound));
}

bool LoadRun::TooSlow() {
  if (options_.latency_bound == absl::InfiniteDuration()) return false;
  absl::MutexLock lock(&mutex_);
  const absl::Time last_due = absl::Now() - options_.latency_bound;
  const int64_t waiting =
      std::count_if(outstanding_.begin(), outstanding_.end(), [&](const Call* call) {
        return call->outcome.due >= counted_from_ && call->outcome.due < last_due;
      });
  return tally_.over_bound() + waiting > options_.most_over_bound;
}

bool LoadRun::AllAnswered() const {
  return outstanding_.empty() && !pacing_ && (live_callers_ == 0 || stopped_);
}

bool LoadRun::Finished() {
  absl::MutexLock lock(&mutex_);
  if (!AllAnswered()) ended_.WaitWithTimeout(&mutex_, kMoment);
  return AllAnswered();
}

}  // namespace tilewire::client
