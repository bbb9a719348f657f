// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/stream_call.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "service/observe/steady_time.h"
#include "service/wire/status_text.h"

namespace tilewire::service {

// One message of a stream. `done`, `code` and `given_up` are guarded by the stream's lock.
class StreamCall::Request final : public BufferedCall {
 public:
  Request(StreamCall* stream, grpc::ByteBuffer* bytes)
      : BufferedCall(*stream->terms_.row, stream->host_, stream->terms_.serve), stream_(stream) {
    request_.Swap(bytes);
  }

  using BufferedCall::Begin;
  using BufferedCall::GiveUp;
  using BufferedCall::Written;

  // The answer, or the stream's end, is known.
  void Settle(const absl::Status& told) {
    done = true;
    if (told.ok()) return;
    code = told;
    if (stream_->ends_with_code_) return;
    code = WithoutExceptions([this, &told] {
      grpc::ByteBuffer answer = stream_->terms_.encode_error(failed_id(), told);
      response_.Swap(&answer);
      return absl::OkStatus();
    });
  }

  void WriteTo(StreamMethod::Stream* stream, Event* wrote) {
    AwaitReader();
    stream->Write(response_, wrote->tag());
  }

  bool done = false;  // Deliver() was called
  absl::Status code;  // the stream ends with it, in the place of an answer
  bool given_up = false;

 private:
  // Other threads may free the request once it is settled.
  void Deliver(const absl::Status& status) override {
    StreamCall* const stream = stream_;
    const absl::Status told = WithoutExceptions([&] { return Told(status); });
    {
      threading::MutexLock lock(&stream->mutex_);
      Settle(told);
    }
    stream->Advance();
    stream->Leave();
  }
  void TellRetry(absl::Duration) override {}  // a message has no headers of its own
  void Cut(const absl::Status& why) override { CancelWithStatus(why, &stream_->context_); }
  std::string Peer() const override { return stream_->context_.peer(); }
  absl::string_view Header(absl::string_view name) const override {
    return HeaderOf(stream_->context_, name);
  }

  StreamCall* const stream_;
};

void StreamMethod::Await(const CallHost* host, CallQueue* queue) {
  host_ = host;
  queue_ = queue;
  queue->Add([this] { AwaitNext(); });
}

// If memory for another stream runs out, the queue's next look tries again.
void StreamMethod::AwaitNext() {
  if (asked_.exchange(true)) return;
  if (!queue_->AskFor([this] { return std::make_unique<StreamCall>(this); })) asked_.store(false);
}

absl::Status StreamMethod::Add(StreamCall* call) {
  asked_.store(false);
  return WithoutExceptions([this, call]() -> absl::Status {
    threading::MutexLock lock(&mutex_);
    if (draining_) return absl::UnavailableError("the server is draining");
    if (streams_.size() >= terms_.most_streams) {
      return absl::ResourceExhaustedError(absl::StrCat(
          terms_.most_streams, " streams of ", terms_.row->rpc, " are open, the most that may be"));
    }
    streams_.insert(call);
    return absl::OkStatus();
  });
}

void StreamMethod::Remove(StreamCall* call) {
  threading::MutexLock lock(&mutex_);
  streams_.erase(call);
}

void StreamMethod::Drain() {
  threading::MutexLock lock(&mutex_);
  draining_ = true;
  for (StreamCall* stream : streams_) stream->StopReading();
}

bool StreamMethod::AwaitNone() {
  constexpr absl::Duration kMostPatience = absl::Seconds(10);
  threading::MutexLock lock(&mutex_);
  const auto is_empty = +[](std::set<StreamCall*>* streams) { return streams->empty(); };
  return mutex_.AwaitWithTimeout(absl::Condition(is_empty, &streams_), kMostPatience);
}

void StreamCall::Ask(grpc::ServerCompletionQueue* queue) {
  context_.AsyncNotifyWhenDone(over_.tag());
  terms_.ask(&context_, &stream_, queue, &arrived_);
}

bool StreamCall::EndsWithCode() const {
  if (terms_.encode_error == nullptr) return true;
  const auto& headers = context_.client_metadata();
  const auto found = headers.find(terms_.ends_with_code);
  return found != headers.end() && found->second == "true";
}

// Not OK when the server shuts down: nothing else will happen then.
void StreamCall::Arrived(bool ok) {
  if (!ok) {
    delete this;
    return;
  }
  StreamMethod* const method = method_;
  const absl::Status status = method->Add(this);
  {
    threading::MutexLock lock(&mutex_);
    begun_ = true;
    deadline_ = Steady(absl::FromChrono(context_.deadline()));
    ends_with_code_ = EndsWithCode();
    if (!status.ok()) failure_ = status;
  }
  Advance();
  Leave();
  method->AwaitNext();
}

void StreamCall::StopReading() {
  threading::MutexLock lock(&mutex_);
  draining_ = true;
  Proceed();
}

void StreamCall::Advance() {
  bool dead = false;
  {
    threading::MutexLock lock(&mutex_);
    Proceed();
    dead = broken_ || !failure_.ok();
  }
  if (dead) GiveUpAll();
}

void StreamCall::Proceed() {
  if (!begun_) return;
  if (finished_) {
    std::erase_if(requests_, [](const auto& request) { return request->done; });
    return;
  }
  if (!writing_ && failure_.ok() && !requests_.empty() && requests_.front()->done) {
    failure_ = requests_.front()->code;
    if (failure_.ok() && !broken_) WriteFirst();
  }
  if (writing_) return MaybeRead();
  const bool at_end = (no_more_ || draining_) && requests_.empty();
  if (broken_ || !failure_.ok() || at_end) {
    Finish();
  } else {
    MaybeRead();
  }
}

void StreamCall::WriteFirst() {
  writing_ = true;
  present_.fetch_add(1);
  requests_.front()->WriteTo(&stream_, &wrote_);
}

void StreamCall::MaybeRead() {
  const bool may = !reading_ && !no_more_ && !draining_ && !broken_ && failure_.ok();
  if (!may || static_cast<int>(requests_.size()) >= terms_.in_flight) return;
  reading_ = true;
  present_.fetch_add(1);
  stream_.Read(&incoming_, read_.tag());
}

absl::Status StreamCall::LastStatus() const {
  if (!failure_.ok()) return failure_;
  if (broken_) return absl::CancelledError("cancelled");
  if (no_more_) return absl::OkStatus();
  return absl::UnavailableError("the server is draining");
}

// A second one would end the process.
void StreamCall::Finish() {
  finished_ = true;
  present_.fetch_add(1);
  FinishCall([this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return ToGrpcStatus(LastStatus()); },
             [this](const grpc::Status& status) { stream_.Finish(status, ended_.tag()); });
  std::erase_if(requests_, [](const auto& request) { return request->done; });
}

// Null if nothing came, or nothing is taken any longer.
std::shared_ptr<StreamCall::Request> StreamCall::TakeRequest(bool ok) {
  threading::MutexLock lock(&mutex_);
  reading_ = false;
  if (!ok) no_more_ = true;
  if (!ok || finished_ || broken_ || !failure_.ok()) return nullptr;
  std::shared_ptr<Request> request;
  const absl::Status made = WithoutExceptions([&] {
    request = std::make_shared<Request>(this, &incoming_);
    requests_.push_back(request);
    return absl::OkStatus();
  });
  if (!made.ok()) {
    failure_ = made;
    return nullptr;
  }
  present_.fetch_add(1);
  return request;
}

void StreamCall::Read(bool ok) {
  if (const std::shared_ptr<Request> request = TakeRequest(ok)) request->Begin(deadline_);
  Advance();
  Leave();
}

void StreamCall::Wrote(bool ok) {
  std::shared_ptr<Request> written;
  {
    threading::MutexLock lock(&mutex_);
    written = requests_.front();
  }
  written->Written(ok);
  {
    threading::MutexLock lock(&mutex_);
    requests_.pop_front();
    writing_ = false;
    broken_ |= !ok;
  }
  Advance();
  Leave();
}

// Also when the client has given up.
void StreamCall::Over(bool) {
  if (context_.IsCancelled()) {
    threading::MutexLock lock(&mutex_);
    broken_ = true;
  }
  Advance();
  Leave();
}

// A request that ends here ends up here again: one of the calls does it for all.
void StreamCall::GiveUpAll() {
  {
    threading::MutexLock lock(&mutex_);
    if (std::exchange(giving_up_, true)) return;
  }
  while (true) {
    std::shared_ptr<Request> next;
    {
      threading::MutexLock lock(&mutex_);
      const auto found = std::find_if(requests_.begin(), requests_.end(), [](const auto& request) {
        return !request->done && !request->given_up;
      });
      if (found == requests_.end()) {
        giving_up_ = false;
        return;
      }
      next = *found;
      next->given_up = true;
    }
    next->GiveUp();
  }
}

void StreamCall::Leave() {
  if (present_.fetch_sub(1) > 1) return;
  method_->Remove(this);
  delete this;
}

}  // namespace tilewire::service
