// SPDX-License-Identifier: Apache-2.0
//
// An RPC in which both sides send a stream of messages: each message is a request of its own, with
// a ticket, a place in the queue and limits like any other, and is answered by one message, in the
// order of the requests. No thread waits for a stream.
//
//   bounded    at most `in_flight` requests are read ahead of the answer that the client reads;
//              gRPC's flow control holds up the rest with the client
//   errors     a request that fails is answered by what `encode_error` makes of its status; without
//              it, or where the client's header asks for that, the stream ends with the status once
//              the answers before it are written
//   gave up    a client that cancels, or does not read an answer in time, ends all its requests
//   drain      what has been read is answered, no more is read, and the stream ends as UNAVAILABLE
//
// A stream deletes itself when gRPC is done with it.
#ifndef SERVICE_RPC_STREAM_CALL_H_
#define SERVICE_RPC_STREAM_CALL_H_

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/threading/mutex.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/async_stream.h"
#include "service/front/call_queue.h"
#include "service/rpc/unary_call.h"

namespace tilewire::service {

class StreamCall;

// A method of a service, and its streams. Outlives its calls. Thread-safe.
class StreamMethod {
 public:
  using Stream = grpc::ServerAsyncReaderWriter<grpc::ByteBuffer, grpc::ByteBuffer>;

  struct Terms {
    const Method* row = nullptr;
    // Asks gRPC for the method's next call.
    std::function<void(grpc::ServerContext* context, Stream* stream,
                       grpc::ServerCompletionQueue* queue, Event* arrived)>
        ask;
    ServeFunction serve;
    // The answer to a request that failed. May be empty.
    std::function<grpc::ByteBuffer(const std::string& id, const absl::Status& status)> encode_error;
    // A header that, if "true", stands for no `encode_error`. May be empty.
    std::string ends_with_code;
    int in_flight = 16;
    size_t most_streams = 1024;
  };

  explicit StreamMethod(Terms terms) : terms_(std::move(terms)) {}
  StreamMethod(const StreamMethod&) = delete;

  // Streams are served from when the queue starts. The host and the queue outlive them.
  void Await(const CallHost* host, CallQueue* queue);
  // From now on no stream reads, and each ends after its last answer.
  void Drain() ABSL_LOCKS_EXCLUDED(mutex_);
  // Waits until no stream is left, before the queue ends: one that would be finished later ends the
  // process. Whether none is left; false after ten seconds.
  bool AwaitNone() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  friend class StreamCall;

  void AwaitNext();
  // Why the stream is refused; OK: it is kept until Remove().
  absl::Status Add(StreamCall* call) ABSL_LOCKS_EXCLUDED(mutex_);
  void Remove(StreamCall* call) ABSL_LOCKS_EXCLUDED(mutex_);

  const Terms terms_;
  const CallHost* host_ = nullptr;
  CallQueue* queue_ = nullptr;
  std::atomic<bool> asked_{false};  // gRPC was asked for the next stream
  threading::Mutex mutex_;
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  std::set<StreamCall*> streams_ ABSL_GUARDED_BY(mutex_);
};

// One stream. Its state is guarded by its lock, under which no request is begun, ended or left.
class StreamCall {
 public:
  // For CallQueue::AskFor().
  explicit StreamCall(StreamMethod* method)
      : method_(method), terms_(method->terms_), host_(*method->host_) {}
  void Ask(grpc::ServerCompletionQueue* queue);

  void StopReading() ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  class Request;

  void Arrived(bool ok);
  void Read(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Wrote(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  void Ended(bool) { Leave(); }
  void Over(bool) ABSL_LOCKS_EXCLUDED(mutex_);
  void Leave();

  std::shared_ptr<Request> TakeRequest(bool ok) ABSL_LOCKS_EXCLUDED(mutex_);
  // Does whatever can be done next: reads, writes, ends; and gives up what has lost its client.
  void Advance() ABSL_LOCKS_EXCLUDED(mutex_);
  void Proceed() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void MaybeRead() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void WriteFirst() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Finish() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::Status LastStatus() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void GiveUpAll() ABSL_LOCKS_EXCLUDED(mutex_);
  bool EndsWithCode() const;

  StreamMethod* const method_;
  const StreamMethod::Terms& terms_;
  const CallHost& host_;
  grpc::ServerContext context_;
  StreamMethod::Stream stream_{&context_};
  EventOf<StreamCall, &StreamCall::Arrived> arrived_{this};
  EventOf<StreamCall, &StreamCall::Read> read_{this};
  EventOf<StreamCall, &StreamCall::Wrote> wrote_{this};
  EventOf<StreamCall, &StreamCall::Ended> ended_{this};
  EventOf<StreamCall, &StreamCall::Over> over_{this};
  // Its arrival, its being over, and each read, write, request and end that is under way.
  std::atomic<int> present_{2};
  grpc::ByteBuffer incoming_;  // of the read that is under way
  threading::Mutex mutex_;
  absl::Time deadline_;          // constant once it has begun
  bool ends_with_code_ = false;  // the same
  bool begun_ ABSL_GUARDED_BY(mutex_) = false;
  // In the order of their arrival; the first is written while `writing_`.
  std::deque<std::shared_ptr<Request>> requests_ ABSL_GUARDED_BY(mutex_);
  bool reading_ ABSL_GUARDED_BY(mutex_) = false, writing_ ABSL_GUARDED_BY(mutex_) = false;
  bool no_more_ ABSL_GUARDED_BY(mutex_) = false;  // the client has sent its last
  bool draining_ ABSL_GUARDED_BY(mutex_) = false;
  bool broken_ ABSL_GUARDED_BY(mutex_) = false;   // nothing can be written any longer
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);  // ends the stream
  bool finished_ ABSL_GUARDED_BY(mutex_) = false;
  bool giving_up_ ABSL_GUARDED_BY(mutex_) = false;  // in GiveUpAll()
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_STREAM_CALL_H_
