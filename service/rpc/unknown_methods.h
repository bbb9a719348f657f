// SPDX-License-Identifier: Apache-2.0
//
// Answers calls of methods that the server does not have with UNIMPLEMENTED and the method's name.
// Thread-safe.
#ifndef SERVICE_RPC_UNKNOWN_METHODS_H_
#define SERVICE_RPC_UNKNOWN_METHODS_H_

#include <atomic>

#include "grpcpp/generic/async_generic_service.h"
#include "grpcpp/grpcpp.h"
#include "service/front/call_queue.h"

namespace tilewire::service {

class UnknownMethods {
 public:
  // To the server that `builder` will build; outlives it.
  void AddTo(grpc::ServerBuilder* builder) { builder->RegisterAsyncGenericService(&service_); }

  // Before the queue starts, which serves calls until it ends.
  void Await(CallQueue* queue);

 private:
  class Call;

  void AwaitNext();

  grpc::AsyncGenericService service_;
  CallQueue* queue_ = nullptr;
  std::atomic<bool> asked_{false};  // gRPC was asked for the next call
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_UNKNOWN_METHODS_H_
