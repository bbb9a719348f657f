// SPDX-License-Identifier: Apache-2.0
//
// The Open Inference Protocol's service: translates between the wire and Model::Run(). Thread-safe.
#ifndef SERVICE_RPC_INFERENCE_SERVICE_H_
#define SERVICE_RPC_INFERENCE_SERVICE_H_

#include "grpcpp/grpcpp.h"
#include "protos/open_inference.grpc.pb.h"
#include "service/models/model_repository.h"
#include "service/rpc/rpc_call.h"
#include "service/schedule/scheduler.h"

namespace tilewire::service {

// ModelInfer is a raw handler, so that tensors are read where gRPC put them; protobuf parses the
// other methods.
using InferenceServiceBase = inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
    inference::GRPCInferenceService::CallbackService>;

class InferenceService final : public InferenceServiceBase {
 public:
  // Both must outlive the service. An answer of more than `max_message_bytes` is refused.
  InferenceService(const ModelRepository* models, Scheduler* scheduler, int64_t max_message_bytes)
      : models_(models), scheduler_(scheduler), max_message_bytes_(max_message_bytes) {}

  grpc::ServerUnaryReactor* ServerLive(grpc::CallbackServerContext* context,
                                       const inference::ServerLiveRequest* request,
                                       inference::ServerLiveResponse* response) override;
  grpc::ServerUnaryReactor* ServerReady(grpc::CallbackServerContext* context,
                                        const inference::ServerReadyRequest* request,
                                        inference::ServerReadyResponse* response) override;
  grpc::ServerUnaryReactor* ModelReady(grpc::CallbackServerContext* context,
                                       const inference::ModelReadyRequest* request,
                                       inference::ModelReadyResponse* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(grpc::CallbackServerContext* context,
                                           const inference::ServerMetadataRequest* request,
                                           inference::ServerMetadataResponse* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(grpc::CallbackServerContext* context,
                                          const inference::ModelMetadataRequest* request,
                                          inference::ModelMetadataResponse* response) override;
  grpc::ServerUnaryReactor* RepositoryIndex(grpc::CallbackServerContext* context,
                                            const inference::RepositoryIndexRequest* request,
                                            inference::RepositoryIndexResponse* response) override;
  grpc::ServerUnaryReactor* ModelInfer(grpc::CallbackServerContext* context,
                                       const grpc::ByteBuffer* request,
                                       grpc::ByteBuffer* response) override;

 private:
  absl::Status Infer(const grpc::ByteBuffer& request, const RpcCall& call,
                     grpc::ByteBuffer* response) const;
  absl::Status Describe(const inference::ModelMetadataRequest& request,
                        inference::ModelMetadataResponse* response) const;

  const ModelRepository* const models_;
  Scheduler* const scheduler_;
  const int64_t max_message_bytes_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_INFERENCE_SERVICE_H_
