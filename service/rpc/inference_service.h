// SPDX-License-Identifier: Apache-2.0
//
// The Open Inference Protocol's service: translates between the wire and Model::Run(). Thread-safe.
#ifndef SERVICE_RPC_INFERENCE_SERVICE_H_
#define SERVICE_RPC_INFERENCE_SERVICE_H_

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "grpcpp/grpcpp.h"
#include "protos/open_inference.grpc.pb.h"
#include "service/models/model_control.h"
#include "service/models/model_repository.h"
#include "service/rpc/answers/config_answer.h"
#include "service/rpc/call_host.h"
#include "service/rpc/idle_slots.h"
#include "service/rpc/stream_call.h"
#include "service/rpc/unary_methods.h"

namespace tilewire::service {

// Every method is raw, so that a message is judged before it is parsed, and tensors are read where
// gRPC put them. `Raw` of a list of generated templates makes each of its methods so.
using Inference = inference::GRPCInferenceService;
template <typename Base, template <typename> typename... Methods>
struct RawOf {
  using Type = Base;
};
template <typename Base, template <typename> typename First, template <typename> typename... Rest>
struct RawOf<Base, First, Rest...> {
  using Type = First<typename RawOf<Base, Rest...>::Type>;
};
using InferenceServiceBase =
    RawOf<Inference::AsyncService, Inference::WithRawMethod_ServerLive,
          Inference::WithRawMethod_ServerReady, Inference::WithRawMethod_ModelReady,
          Inference::WithRawMethod_ServerMetadata, Inference::WithRawMethod_ModelMetadata,
          Inference::WithRawMethod_ModelInfer, Inference::WithRawMethod_ModelStreamInfer,
          Inference::WithRawMethod_ModelConfig, Inference::WithRawMethod_ModelStatistics,
          Inference::WithRawMethod_RepositoryIndex, Inference::WithRawMethod_RepositoryModelLoad,
          Inference::WithRawMethod_RepositoryModelUnload,
          Inference::WithRawMethod_SystemSharedMemoryStatus,
          Inference::WithRawMethod_SystemSharedMemoryRegister,
          Inference::WithRawMethod_SystemSharedMemoryUnregister,
          Inference::WithRawMethod_CudaSharedMemoryStatus,
          Inference::WithRawMethod_CudaSharedMemoryRegister,
          Inference::WithRawMethod_CudaSharedMemoryUnregister,
          Inference::WithRawMethod_TraceSetting, Inference::WithRawMethod_LogSettings>::Type;

class InferJob;

class InferenceService final : public InferenceServiceBase {
 public:
  struct Terms {
    // The state of the server as a whole.
    std::function<bool()> live, ready, draining;
    // The other services that it offers, told as extensions.
    std::vector<std::string> services;
    int stream_in_flight = 16;
    ConfigDefaults config;
  };

  // The models and what `host` points to must outlive the service.
  InferenceService(ModelRepository* models, const CallHost& host, Terms terms);
  ~InferenceService() override;

  // Before the queue starts.
  void Await(CallQueue* queue);
  // Before calls arrive; outlives the service's calls. Without it no model is loaded by request.
  void SetModelControl(ModelControl* control) { control_.store(control); }
  // From now on streams end after what they have read.
  void DrainStreams() { streams_.Drain(); }
  bool AwaitNoStreams() { return streams_.AwaitNone(); }

 private:
  void AddServer();
  void AddModels();
  void AddRepository();
  void AddSettings();
  void AddSharedMemory();
  ServeFunction Infer(bool in_stream);
  StreamMethod::Terms StreamTerms();

  bool TakesLoads() const;
  absl::Status TellReady(const inference::ModelReadyRequest& request,
                         inference::ModelReadyResponse* response) const;
  absl::Status Describe(const inference::ModelMetadataRequest& request,
                        inference::ModelMetadataResponse* response) const;
  void ListModels(const inference::RepositoryIndexRequest& request,
                  inference::RepositoryIndexResponse* response) const;

  ModelRepository* const models_;
  const CallHost host_;
  const Terms terms_;
  const std::unique_ptr<IdleSlots<InferJob>> idle_jobs_;
  std::atomic<ModelControl*> control_{nullptr};
  UnaryMethods methods_;
  StreamMethod streams_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_INFERENCE_SERVICE_H_
