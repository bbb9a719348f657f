// SPDX-License-Identifier: Apache-2.0
//
// gRPC's ends of a call: what all have in common, and a unary RPC, which deletes itself when gRPC
// is done with it.
#ifndef SERVICE_RPC_UNARY_CALL_H_
#define SERVICE_RPC_UNARY_CALL_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "grpcpp/grpcpp.h"
#include "grpcpp/support/async_unary_call.h"
#include "service/front/call_queue.h"
#include "service/front/method_table.h"
#include "service/rpc/call.h"
#include "service/rpc/call_host.h"

namespace tilewire::service {

// Makes the job of a request. Without a job, `response` is the answer or the status the error.
// `request` and `response` live as long as the job, which alone may use them; `call` is the one
// that asks.
using ServeFunction = std::function<absl::StatusOr<OwnedJob>(
    const Call& call, const grpc::ByteBuffer& request, grpc::ByteBuffer* response)>;

// A call whose request and answer are gRPC's buffers.
class BufferedCall : public Call {
 protected:
  BufferedCall(const Method& method, const CallHost& host, const ServeFunction& serve)
      : Call(method, host), serve_(serve) {}

  absl::Status Receive(Ticket* ticket, int64_t most) override;
  int64_t RequestBytes() const override { return BytesOf(request_); }
  absl::StatusOr<OwnedJob> MakeJob() override { return serve_(*this, request_, &response_); }
  void ForgetRequest() override { request_.Clear(); }
  int64_t AnswerBytes() const override { return BytesOf(response_); }
  void ForgetAnswer() override { response_.Clear(); }

  grpc::ByteBuffer request_, response_;

 private:
  static int64_t BytesOf(const grpc::ByteBuffer& bytes) {
    return static_cast<int64_t>(bytes.Valid() ? bytes.Length() : 0);
  }

  const ServeFunction& serve_;
};

// Ends a call of gRPC, of which an answer may be on its way. It sends the status past the bytes of
// the answer, which wait for the client's permission.
void CancelWithStatus(const absl::Status& why, grpc::ServerContext* context);

// The first of the client's headers with this name; empty: there is none. Valid as long as the
// context.
absl::string_view HeaderOf(const grpc::ServerContext& context, absl::string_view name);

// A method of a service. Outlives its calls.
struct UnaryMethod {
  using Writer = grpc::ServerAsyncResponseWriter<grpc::ByteBuffer>;

  const Method* row = nullptr;
  // Asks gRPC for the method's next call.
  std::function<void(grpc::ServerContext* context, grpc::ByteBuffer* request, Writer* writer,
                     grpc::ServerCompletionQueue* queue, Event* arrived)>
      ask;
  ServeFunction serve;
  const CallHost* host = nullptr;
  CallQueue* queue = nullptr;
  std::atomic<int> asked{0};  // calls that gRPC was asked for and that have not arrived
};

// Thread-safe. The memory of calls that have ended serves the next ones.
class UnaryCall final : private BufferedCall {
 public:
  // Asks for the method's next calls, as far as gRPC does not await them yet.
  static void Await(UnaryMethod* method);

  static void* operator new(size_t size);
  static void operator delete(void* memory);

  // For CallQueue::AskFor().
  void Ask(grpc::ServerCompletionQueue* queue);

 private:
  explicit UnaryCall(UnaryMethod* method)
      : BufferedCall(*method->row, *method->host, method->serve), method_(method) {}

  void Arrived(bool ok);
  void Over(bool);
  void Finished(bool ok);
  void Leave();

  void Deliver(const absl::Status& status) override;
  void TellRetry(absl::Duration pause) override;
  void Cut(const absl::Status& why) override { CancelWithStatus(why, &context_); }
  std::string Peer() const override { return context_.peer(); }
  absl::string_view Header(absl::string_view name) const override {
    return HeaderOf(context_, name);
  }

  UnaryMethod* const method_;
  grpc::ServerContext context_;
  UnaryMethod::Writer writer_{&context_};
  EventOf<UnaryCall, &UnaryCall::Arrived> arrived_{this};
  EventOf<UnaryCall, &UnaryCall::Finished> written_{this};
  EventOf<UnaryCall, &UnaryCall::Over> over_{this};  // also when the client has given up
  std::atomic<int> present_{3};                      // who uses the call: these three
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNARY_CALL_H_
