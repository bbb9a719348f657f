// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1.ModelService: plans of models. Thread-safe.
#ifndef SERVICE_RPC_MODEL_SERVICE_H_
#define SERVICE_RPC_MODEL_SERVICE_H_

#include <cstdint>

#include "grpcpp/grpcpp.h"
#include "protos/model_service.grpc.pb.h"
#include "service/models/model_repository.h"
#include "service/rpc/call_host.h"

namespace tilewire::service {

using ModelServiceBase =
    v1::ModelService::WithRawCallbackMethod_Explain<v1::ModelService::CallbackService>;

class ModelService final : public ModelServiceBase {
 public:
  // The models and what `host` points to must outlive the service.
  ModelService(ModelRepository* models, const CallHost& host) : models_(models), host_(host) {}

  // Runs in the background: one such request at a time, and only while no other request waits.
  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

 private:
  ModelRepository* const models_;
  const CallHost host_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_MODEL_SERVICE_H_
