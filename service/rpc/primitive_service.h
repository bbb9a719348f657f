// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1.PrimitiveService: single primitives. Thread-safe.
#ifndef SERVICE_RPC_PRIMITIVE_SERVICE_H_
#define SERVICE_RPC_PRIMITIVE_SERVICE_H_

#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "grpcpp/grpcpp.h"
#include "protos/tilewire.grpc.pb.h"
#include "service/rpc/call_host.h"
#include "service/rpc/primitive_compiler.h"
#include "service/rpc/unary_methods.h"

namespace tilewire::service {

// Every method is raw, so that a message is judged before protobuf parses it.
using Primitives = v1::PrimitiveService;
using PrimitiveServiceBase = Primitives::WithRawMethod_Create<
    Primitives::WithRawMethod_Execute<Primitives::WithRawMethod_CacheStatistics<
        Primitives::WithRawMethod_ListImplementations<Primitives::AsyncService>>>>;

class PrimitiveService final : public PrimitiveServiceBase {
 public:
  // Refuses a primitive whose tensors, in all layouts together, would need several messages of the
  // largest size. The engine and what `host` points to must outlive the service.
  PrimitiveService(Engine* engine, const CallHost& host, const PrimitiveLimits& limits);

  // Before the queue starts.
  void Await(CallQueue* queue) { methods_.Await(&host_, queue); }

 private:
  using Bytes = grpc::ByteBuffer;
  using JobOrAnswer = UnaryMethods::JobOrAnswer;

  JobOrAnswer Create(const Bytes& request, Bytes* response);
  JobOrAnswer Execute(const Bytes& request, Bytes* response);
  JobOrAnswer CacheStatistics(const Bytes& request, Bytes* response);
  JobOrAnswer ListImplementations(const Bytes& request, Bytes* response);

  const CallHost host_;
  PrimitiveCompiler compiler_;
  UnaryMethods methods_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PRIMITIVE_SERVICE_H_
