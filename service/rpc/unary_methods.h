// SPDX-License-Identifier: Apache-2.0
//
// The methods of a gRPC service, each served by a function. Thread-compatible.
#ifndef SERVICE_RPC_UNARY_METHODS_H_
#define SERVICE_RPC_UNARY_METHODS_H_

#include <deque>
#include <utility>

#include "service/rpc/unary_call.h"

namespace tilewire::service {

class UnaryMethods {
 public:
  using JobOrAnswer = absl::StatusOr<OwnedJob>;

  // Methods of `service`, which generated code describes as raw: `Service` asks for their calls,
  // and `serve` is a function of `service` too (see UnaryMethod::serve). `name` is a literal.
  template <typename Service, typename Base>
  void Add(const char* name, Service* service,
           void (Base::*ask)(grpc::ServerContext*, grpc::ByteBuffer*, UnaryMethod::Writer*,
                             grpc::CompletionQueue*, grpc::ServerCompletionQueue*, void*),
           JobOrAnswer (Service::*serve)(const grpc::ByteBuffer&, grpc::ByteBuffer*)) {
    UnaryMethod& method = methods_.emplace_back();
    method.name = name;
    method.ask = [service, ask](auto* context, auto* request, auto* writer, auto* queue,
                                Event* arrived) {
      (service->*ask)(context, request, writer, queue, queue, arrived->tag());
    };
    method.serve = [service, serve](const auto& request, auto* response) {
      return (service->*serve)(request, response);
    };
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
