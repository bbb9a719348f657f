// SPDX-License-Identifier: Apache-2.0
//
// The Open Inference Protocol's service: translates between the wire and Model::Run(). Thread-safe.
#ifndef SERVICE_RPC_INFERENCE_SERVICE_H_
#define SERVICE_RPC_INFERENCE_SERVICE_H_

#include <functional>

#include "grpcpp/grpcpp.h"
#include "protos/open_inference.grpc.pb.h"
#include "service/models/model_repository.h"
#include "service/rpc/call_host.h"
#include "service/rpc/idle_slots.h"

namespace tilewire::service {

// Every method is raw, so that a message is judged before it is parsed, and tensors are read where
// gRPC put them.
using Inference = inference::GRPCInferenceService;
using InferenceServiceBase =
    Inference::WithRawCallbackMethod_ServerLive<Inference::WithRawCallbackMethod_ServerReady<
        Inference::WithRawCallbackMethod_ModelReady<Inference::WithRawCallbackMethod_ServerMetadata<
            Inference::WithRawCallbackMethod_ModelMetadata<
                Inference::WithRawCallbackMethod_RepositoryIndex<
                    Inference::WithRawCallbackMethod_ModelInfer<Inference::CallbackService>>>>>>>;

class InferJob;

class InferenceService final : public InferenceServiceBase {
 public:
  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;
  using Bytes = grpc::ByteBuffer;

  // What the server knows of itself as a whole.
  struct Health {
    std::function<bool()> live, ready;
    std::function<bool()> draining;
  };

  // The models and what `host` points to must outlive the service.
  InferenceService(ModelRepository* models, const CallHost& host, Health health);
  ~InferenceService() override;

  Reactor* ServerLive(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* ServerReady(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* ModelReady(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* ServerMetadata(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* ModelMetadata(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* RepositoryIndex(Context* context, const Bytes* request, Bytes* response) override;
  Reactor* ModelInfer(Context* context, const Bytes* request, Bytes* response) override;

 private:
  absl::Status Describe(const inference::ModelMetadataRequest& request,
                        inference::ModelMetadataResponse* response) const;
  void ListModels(const inference::RepositoryIndexRequest& request,
                  inference::RepositoryIndexResponse* response) const;

  ModelRepository* const models_;
  const CallHost host_;
  const Health health_;
  const std::unique_ptr<IdleSlots<InferJob>> idle_jobs_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_INFERENCE_SERVICE_H_
