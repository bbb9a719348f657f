// SPDX-License-Identifier: Apache-2.0
#include "client/load/load_run.h"

#include <algorithm>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/time/clock.h"

namespace tilewire::client {
namespace {

constexpr char kMethod[] = "/inference.GRPCInferenceService/ModelInfer";
constexpr absl::Duration kMoment = absl::Milliseconds(100);
// A server that refuses everything is not asked a million times.
constexpr int64_t kMostErrorsAtFirst = 100;

// What the server asks its callers to wait before the next request; zero if it does not say.
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

}  // namespace

struct LoadRun::Call {
  size_t connection = 0, input = 0;
  absl::Time due, sent, answered;
  std::string difference;  // from the first answer to the input
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  grpc::Status status;
  std::unique_ptr<grpc::GenericClientAsyncResponseReader> reader;
};

LoadRun::LoadRun(const LoadOptions& options, const std::vector<std::unique_ptr<Client>>& clients,
                 std::vector<grpc::ByteBuffer> requests)
    : options_(options), requests_(std::move(requests)), check_(requests_.size()) {
  for (const auto& client : clients)
    stubs_.push_back(std::make_unique<grpc::GenericStub>(client->channel()));
}

LoadReport LoadRun::Run(const LoadProgress& progress) {
  start_ = absl::Now();
  counted_from_ = start_ + options_.warm_up;
  end_ = options_.requests > 0 ? absl::InfiniteFuture() : counted_from_ + options_.duration;
  const bool open = options_.rate > 0;
  {
    absl::MutexLock lock(&mutex_);
    pacing_ = open;
    live_callers_ = open ? 0 : stubs_.size();
  }
  std::thread collector([this] { CollectAnswers(); });
  std::thread pacer([this, open] { open ? PaceOpenLoop() : PaceCallers(); });
  for (size_t caller = 0; !open && caller < stubs_.size(); ++caller) SendOrLeave(caller, start_);
  while (!Finished()) {
    if (options_.stop != nullptr && options_.stop->load()) Stop();
    progress(Report(/*final=*/false));
  }
  Stop();
  pacer.join();
  answers_.Shutdown();
  collector.join();
  return Report(/*final=*/true);
}

void LoadRun::PaceOpenLoop() {
  Arrivals arrivals(options_.rate, options_.arrivals, options_.seed);
  size_t connection = 0;
  for (absl::Time due = start_ + arrivals.Next(); due < end_; due = start_ + arrivals.Next()) {
    SleepUntil(due);
    if (Admit(due)) Send(connection++ % stubs_.size(), due);
    absl::MutexLock lock(&mutex_);
    if (stopped_ || (options_.requests > 0 && issued_ >= options_.requests)) break;
  }
  absl::MutexLock lock(&mutex_);
  pacing_ = false;
}

void LoadRun::PaceCallers() {
  for (;;) {
    Due next;
    {
      absl::MutexLock lock(&mutex_);
      const auto wakes = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
        return stopped_ || !pushed_back_.empty();
      };
      mutex_.Await(absl::Condition(&wakes));
      if (stopped_) return;
      next = pushed_back_.top();
    }
    // One that comes meanwhile and is due earlier waits no longer than this.
    SleepUntil(std::min(next.first, absl::Now() + absl::Milliseconds(1)));
    if (absl::Now() < next.first) continue;
    {
      absl::MutexLock lock(&mutex_);
      if (stopped_) return;
      next = pushed_back_.top();
      pushed_back_.pop();
    }
    SendOrLeave(next.second, next.first);
  }
}

void LoadRun::SleepUntil(absl::Time time) {
  for (absl::Time now = absl::Now(); now < time; now = absl::Now()) {
    absl::SleepFor(std::min(time - now, kMoment));
    absl::MutexLock lock(&mutex_);
    if (stopped_) return;
  }
}

bool LoadRun::Admit(absl::Time due) {
  absl::MutexLock lock(&mutex_);
  if (stopped_ || due >= end_) return false;
  if (options_.rate > 0 && outstanding_.size() >= static_cast<size_t>(options_.max_waiting)) {
    if (due >= counted_from_) ++report_.unsent;
    return false;
  }
  if (due < counted_from_) return true;
  if (options_.requests > 0 && issued_ >= options_.requests) return false;
  ++issued_;
  return true;
}

void LoadRun::Send(size_t connection, absl::Time due) {
  auto* const call = new Call;
  call->connection = connection;
  call->due = due;
  {
    absl::MutexLock lock(&mutex_);
    call->input = static_cast<size_t>(sent_++) % requests_.size();
    outstanding_.insert(call);
  }
  call->sent = absl::Now();
  if (options_.infer.deadline != absl::InfiniteDuration())
    call->context.set_deadline(absl::ToChronoTime(call->sent + options_.infer.deadline));
  call->reader = stubs_[connection]->PrepareUnaryCall(&call->context, kMethod,
                                                      requests_[call->input], &answers_);
  call->reader->StartCall();
  call->reader->Finish(&call->answer, &call->status, call);
}

void LoadRun::CollectAnswers() {
  void* tag = nullptr;
  bool ok = false;
  while (answers_.Next(&tag, &ok)) {
    const std::unique_ptr<Call> call(static_cast<Call*>(tag));
    call->answered = absl::Now();
    if (call->status.ok()) call->difference = check_.Differs(call->input, call->answer);
    if (options_.rate == 0) SendNext(*call);
    Count(call.get());
  }
}

void LoadRun::SendNext(const Call& last) {
  const absl::Duration pushback =
      last.status.ok() ? absl::ZeroDuration() : PushbackOf(last.context);
  const absl::Time due = absl::Now() + pushback;
  if (pushback == absl::ZeroDuration()) return SendOrLeave(last.connection, due);
  absl::MutexLock lock(&mutex_);
  pushed_back_.emplace(due, last.connection);
}

void LoadRun::SendOrLeave(size_t caller, absl::Time due) {
  if (Admit(due)) return Send(caller, due);
  absl::MutexLock lock(&mutex_);
  --live_callers_;
}

void LoadRun::Count(Call* call) {
  absl::MutexLock lock(&mutex_);
  outstanding_.erase(call);
  const bool broken_off = stopped_ && call->status.error_code() == grpc::StatusCode::CANCELLED;
  if (call->due < counted_from_ || broken_off) return;
  report_.elapsed = call->answered - counted_from_;
  report_.lateness.Add(call->sent - call->due);
  call->status.ok() ? CountAnswer(*call) : CountError(*call);
}

void LoadRun::CountAnswer(const Call& call) {
  ++report_.answered;
  report_.latencies.Add(call.answered - call.due);
  report_.service.Add(call.answered - call.sent);
  if (call.difference.empty()) return;
  ++report_.mismatches;
  if (report_.first_error.empty()) report_.first_error = call.difference;
}

void LoadRun::CountError(const Call& call) {
  const absl::Status status(static_cast<absl::StatusCode>(call.status.error_code()),
                            call.status.error_message());
  const int64_t errors = ++report_.errors[status.code()];
  if (report_.first_error.empty()) report_.first_error = status.ToString();
  if (options_.rate == 0 && report_.answered == 0 && errors >= kMostErrorsAtFirst) stopped_ = true;
}

void LoadRun::Stop() {
  absl::MutexLock lock(&mutex_);
  stopped_ = true;
  for (Call* call : outstanding_) call->context.TryCancel();
}

bool LoadRun::Finished() {
  absl::MutexLock lock(&mutex_);
  const auto all_answered = [this]() ABSL_SHARED_LOCKS_REQUIRED(mutex_) {
    return outstanding_.empty() && !pacing_ && (live_callers_ == 0 || stopped_);
  };
  return mutex_.AwaitWithTimeout(absl::Condition(&all_answered), kMoment);
}

// Without the percentiles while the load runs: a line of progress does not need them.
LoadReport LoadRun::Report(bool final) {
  absl::MutexLock lock(&mutex_);
  if (final) return report_;
  LoadReport so_far;
  so_far.answered = report_.answered;
  so_far.mismatches = report_.mismatches;
  so_far.unsent = report_.unsent;
  so_far.errors = report_.errors;
  so_far.elapsed = std::max(absl::Now() - counted_from_, absl::ZeroDuration());
  return so_far;
}

}  // namespace tilewire::client
