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

namespace tilewire::service {

// Every method is raw, so that a message is judged before protobuf parses it.
using Primitives = v1::PrimitiveService;
using PrimitiveServiceBase = Primitives::WithRawCallbackMethod_Create<
    Primitives::WithRawCallbackMethod_Execute<Primitives::WithRawCallbackMethod_CacheStatistics<
        Primitives::WithRawCallbackMethod_ListImplementations<Primitives::CallbackService>>>>;

class PrimitiveService final : public PrimitiveServiceBase {
 public:
  // Refuses a primitive whose tensors, in all layouts together, would need several messages of the
  // largest size. The engine and what `host` points to must outlive the service.
  PrimitiveService(Engine* engine, const CallHost& host, const PrimitiveLimits& limits)
      : host_(host), compiler_(engine, host.max_message_bytes, limits) {}

  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CacheStatistics(grpc::CallbackServerContext* context,
                                            const grpc::ByteBuffer* request,
                                            grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* ListImplementations(grpc::CallbackServerContext* context,
                                                const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) override;

 private:
  const CallHost host_;
  PrimitiveCompiler compiler_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PRIMITIVE_SERVICE_H_
