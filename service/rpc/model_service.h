// SPDX-License-Identifier: Apache-2.0
//
// tilewire.v1.ModelService: plans of models, where their time goes, slow requests, and what the
// server does. Thread-safe.
#ifndef SERVICE_RPC_MODEL_SERVICE_H_
#define SERVICE_RPC_MODEL_SERVICE_H_

#include <cstdint>

#include "grpcpp/grpcpp.h"
#include "protos/model_service.grpc.pb.h"
#include "service/models/model_repository.h"
#include "service/observe/slow_requests.h"
#include "service/rpc/answers/server_status_answer.h"
#include "service/rpc/call_host.h"
#include "service/rpc/unary_methods.h"

namespace tilewire::service {

using ModelServiceBase = v1::ModelService::WithRawMethod_Explain<
    v1::ModelService::WithRawMethod_LiveProfile<v1::ModelService::WithRawMethod_SlowRequests<
        v1::ModelService::WithRawMethod_ServerStatus<v1::ModelService::AsyncService>>>>;

class ModelService final : public ModelServiceBase {
 public:
  // The models, the slow requests and what `host` points to must outlive the service.
  ModelService(ModelRepository* models, const service::SlowRequests* slow, ReadServerNumbers server,
               const CallHost& host);

  // Before the queue starts.
  void Await(CallQueue* queue) { methods_.Await(&host_, queue); }

 private:
  // Runs in the background: one such request at a time, and only while no other request waits.
  UnaryMethods::JobOrAnswer Explain(const grpc::ByteBuffer& request, grpc::ByteBuffer* response);
  UnaryMethods::JobOrAnswer LiveProfile(const grpc::ByteBuffer& request,
                                        grpc::ByteBuffer* response);

  ModelRepository* const models_;
  const CallHost host_;
  UnaryMethods methods_;
};

}  // namespace tilewire::service

#endif  // SERVICE_RPC_MODEL_SERVICE_H_
