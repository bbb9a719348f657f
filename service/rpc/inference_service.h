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
#include "service/rpc/unary_methods.h"

namespace tilewire::service {

// Every method is raw, so that a message is judged before it is parsed, and tensors are read where
// gRPC put them.
using Inference = inference::GRPCInferenceService;
using InferenceServiceBase =
    Inference::WithRawMethod_ServerLive<Inference::WithRawMethod_ServerReady<
        Inference::WithRawMethod_ModelReady<Inference::WithRawMethod_ServerMetadata<
            Inference::WithRawMethod_ModelMetadata<Inference::WithRawMethod_RepositoryIndex<
                Inference::WithRawMethod_ModelInfer<Inference::AsyncService>>>>>>>;

class InferJob;

class InferenceService final : public InferenceServiceBase {
 public:
  // The state of the server as a whole.
  struct Health {
    std::function<bool()> live, ready;
    std::function<bool()> draining;
  };

  // The models and what `host` points to must outlive the service.
  InferenceService(ModelRepository* models, const CallHost& host, Health health);
  ~InferenceService() override;

  // Before the queue starts.
  void Await(CallQueue* queue) { methods_.Await(&host_, queue); }

 private:
  using Bytes = grpc::ByteBuffer;
  using JobOrAnswer = UnaryMethods::JobOrAnswer;

  JobOrAnswer ServerLive(const Bytes& request, Bytes* response);
  JobOrAnswer ServerReady(const Bytes& request, Bytes* response);
  JobOrAnswer ModelReady(const Bytes& request, Bytes* response);
  JobOrAnswer ServerMetadata(const Bytes& request, Bytes* response);
  JobOrAnswer ModelMetadata(const Bytes& request, Bytes* response);
  JobOrAnswer RepositoryIndex(const Bytes& request, Bytes* response);
  JobOrAnswer ModelInfer(const Bytes& request, Bytes* response);

  absl::Status Describe(const inference::ModelMetadataRequest& request,
                        inference::ModelMetadataResponse* response) const;
  void ListModels(const inference::RepositoryIndexRequest& request,
                  inference::RepositoryIndexResponse* response) const;

  ModelRepository* const models_;
  const CallHost host_;
  const Health health_;
  const std::unique_ptr<IdleSlots<InferJob>> idle_jobs_;
  UnaryMethods methods_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_INFERENCE_SERVICE_H_
