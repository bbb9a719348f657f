// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1.PrimitiveService: single primitives. Thread-safe.
#ifndef SERVICE_RPC_PRIMITIVE_SERVICE_H_
#define SERVICE_RPC_PRIMITIVE_SERVICE_H_

#include <cstdint>
#include <memory>

#include "engine/engine.h"
#include "grpcpp/grpcpp.h"
#include "protos/tilewire.grpc.pb.h"
#include "service/rpc/primitive_catalog.h"
#include "service/rpc/rpc_call.h"
#include "service/schedule/scheduler.h"

namespace tilewire::service {

// Requests that carry tensors or descriptors are raw, so that their size is judged before protobuf
// parses them.
using PrimitiveServiceBase = v1::PrimitiveService::WithRawCallbackMethod_Create<
    v1::PrimitiveService::WithRawCallbackMethod_Execute<v1::PrimitiveService::CallbackService>>;

class PrimitiveService final : public PrimitiveServiceBase {
 public:
  // An answer of more than `max_message_bytes` is refused, and so is a primitive whose tensors, in
  // all layouts together, would need some such messages. Engine and scheduler must outlive the
  // service.
  PrimitiveService(Engine* engine, Scheduler* scheduler, int64_t max_message_bytes);

  grpc::ServerUnaryReactor* Create(grpc::CallbackServerContext* context,
                                   const grpc::ByteBuffer* request,
                                   grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* Execute(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;
  grpc::ServerUnaryReactor* CacheStatistics(grpc::CallbackServerContext* context,
                                            const v1::CacheStatisticsRequest* request,
                                            v1::CacheStatisticsResponse* response) override;
  grpc::ServerUnaryReactor* ListImplementations(grpc::CallbackServerContext* context,
                                                const v1::ListImplementationsRequest* request,
                                                v1::ListImplementationsResponse* response) override;

 private:
  struct Compiled {
    std::shared_ptr<const DescribedPrimitive> described;
    PrimitiveCache::Found found;
  };
  absl::StatusOr<Compiled> Compile(std::shared_ptr<const DescribedPrimitive> described);
  absl::StatusOr<Compiled> CompileMessage(const v1::PrimitiveDesc& message);

  absl::Status DoCreate(const v1::CreateRequest& request, v1::CreateResponse* response);
  absl::Status DoExecute(const v1::ExecuteRequest& request, const RpcCall& call,
                         v1::ExecuteResponse* response);

  Engine* const engine_;
  Scheduler* const scheduler_;
  const int64_t max_message_bytes_;
  const int64_t max_tensor_bytes_;
  PrimitiveCatalog catalog_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_PRIMITIVE_SERVICE_H_
