// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1.ModelService: plans of models. Thread-safe.
#ifndef SERVICE_RPC_MODEL_SERVICE_H_
#define SERVICE_RPC_MODEL_SERVICE_H_

#include <cstdint>

#include "grpcpp/grpcpp.h"
#include "protos/model_service.grpc.pb.h"
#include "service/models/model_repository.h"
#include "service/rpc/rpc_call.h"
#include "service/schedule/scheduler.h"

namespace tilewire::service {

using ModelServiceBase =
    v1::ModelService::WithRawCallbackMethod_Explain<v1::ModelService::CallbackService>;

class ModelService final : public ModelServiceBase {
 public:
  // Both must outlive the service. Models are run only with what fits into `max_message_bytes`.
  ModelService(const ModelRepository* models, Scheduler* scheduler, int64_t max_message_bytes)
      : models_(models), scheduler_(scheduler), max_message_bytes_(max_message_bytes) {}

  grpc::ServerUnaryReactor* Explain(grpc::CallbackServerContext* context,
                                    const grpc::ByteBuffer* request,
                                    grpc::ByteBuffer* response) override;

 private:
  absl::Status DoExplain(const v1::ExplainRequest& request, const RpcCall& call,
                         v1::ExplainResponse* response) const;

  const ModelRepository* const models_;
  Scheduler* const scheduler_;
  const int64_t max_message_bytes_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_MODEL_SERVICE_H_
