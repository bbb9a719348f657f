// SPDX-License-Identifier: Apache-2.0
//
// The methods of a gRPC service, each served by a function. Thread-compatible.
#ifndef SERVICE_RPC_UNARY_METHODS_H_
#define SERVICE_RPC_UNARY_METHODS_H_

#include <deque>
#include <type_traits>
#include <utility>

#include "service/rpc/parsed_request.h"
#include "service/rpc/unary_call.h"

namespace tilewire::service {

class UnaryMethods {
 public:
  using JobOrAnswer = absl::StatusOr<OwnedJob>;
  template <typename Base>
  using AskFunction = void (Base::*)(grpc::ServerContext*, grpc::ByteBuffer*, UnaryMethod::Writer*,
                                     grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*);

  // A method of `service`, which generated code describes as raw: `Service` asks for its calls.
  // `row` is what MethodNamed() finds.
  template <typename Service, typename Base>
  void Add(const Method& row, Service* service, AskFunction<Base> ask, ServeFunction serve) {
    UnaryMethod& method = methods_.emplace_back();
    method.row = &row;
    method.ask = [service, ask](auto* context, auto* request, auto* writer, auto* queue,
                                Event* arrived) {
      (service->*ask)(context, request, writer, queue, queue, arrived->tag());
    };
    method.serve = std::move(serve);
  }
  // The same with a function of `service`.
  template <typename Service, typename Base>
  void Add(const Method& row, Service* service, AskFunction<Base> ask,
           JobOrAnswer (Service::*serve)(const grpc::ByteBuffer&, grpc::ByteBuffer*)) {
    Add(row, service, ask, [service, serve](const Call&, const auto& request, auto* response) {
      return (service->*serve)(request, response);
    });
  }
  // The same for a method whose requests hold names and numbers (see AnswerNames()); `work` may
  // take the call that asks as a first argument.
  template <typename Request, typename Response, typename Service, typename Base, typename Work>
  void AddNames(const Method& row, const CallHost* host, Service* service, AskFunction<Base> ask,
                Work work) {
    Add(row, service, ask, [host, work](const Call& call, const auto& request, auto* response) {
      return AnswerNames<Request, Response>(
          *host, request, response, [&](const Request& asked, Response* answer) {
            if constexpr (std::is_invocable_v<Work, const Call&, const Request&, Response*>) {
              return work(call, asked, answer);
            } else {
              return work(asked, answer);
            }
          });
    });
  }

  // All are served from when the queue starts. The host and the queue outlive their calls.
  void Await(const CallHost* host, CallQueue* queue) {
    for (UnaryMethod& method : methods_) {
      method.host = host;
      method.queue = queue;
      queue->Add([&method] { UnaryCall::Await(&method); });
    }
  }

 private:
  std::deque<UnaryMethod> methods_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNARY_METHODS_H_
