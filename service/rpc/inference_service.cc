// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/inference_service.h"

#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/version.h"
#include "service/wire/request_decoder.h"
#include "service/wire/response_encoder.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

void DescribeTensor(const TensorSpec& spec,
                    inference::ModelMetadataResponse::TensorMetadata* tensor) {
  tensor->set_name(spec.name);
  tensor->set_datatype(std::string(DatatypeName(spec.type)));
  for (int64_t dim : spec.dims) tensor->add_shape(dim);
}

}  // namespace

grpc::ServerUnaryReactor* InferenceService::ServerLive(grpc::CallbackServerContext* context,
                                                       const inference::ServerLiveRequest*,
                                                       inference::ServerLiveResponse* response) {
  response->set_live(true);
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ServerReady(grpc::CallbackServerContext* context,
                                                        const inference::ServerReadyRequest*,
                                                        inference::ServerReadyResponse* response) {
  response->set_ready(models_->AllLoaded() && !scheduler_->draining());
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ModelReady(grpc::CallbackServerContext* context,
                                                       const inference::ModelReadyRequest* request,
                                                       inference::ModelReadyResponse* response) {
  const auto served = models_->Find(request->name(), request->version());
  if (!served.ok()) return RpcCall::Answer(context, served.status());
  response->set_ready((*served)->load_status.ok() && !scheduler_->draining());
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ServerMetadata(
    grpc::CallbackServerContext* context, const inference::ServerMetadataRequest*,
    inference::ServerMetadataResponse* response) {
  response->set_name("tilewire-server");
  response->set_version(kVersion);
  response->add_extensions("layout");
  response->add_extensions("tilewire.v1.PrimitiveService");
  response->add_extensions("tilewire.v1.ModelService");
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ModelMetadata(
    grpc::CallbackServerContext* context, const inference::ModelMetadataRequest* request,
    inference::ModelMetadataResponse* response) {
  return RpcCall::Answer(context, Describe(*request, response));
}

absl::Status InferenceService::Describe(const inference::ModelMetadataRequest& request,
                                        inference::ModelMetadataResponse* response) const {
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served,
                        models_->FindLoaded(request.name(), request.version()));
  response->set_name(served->name);
  for (int64_t version : models_->Versions(served->name)) {
    response->add_versions(absl::StrCat(version));
  }
  response->set_platform("onnx");
  const ModelSignature& signature = served->model->signature();
  for (const TensorSpec& spec : signature.inputs) DescribeTensor(spec, response->add_inputs());
  for (const TensorSpec& spec : signature.outputs) DescribeTensor(spec, response->add_outputs());
  if (!served->labels.empty()) (*response->mutable_properties())["labels"] = served->labels;
  return absl::OkStatus();
}

grpc::ServerUnaryReactor* InferenceService::RepositoryIndex(
    grpc::CallbackServerContext* context, const inference::RepositoryIndexRequest* request,
    inference::RepositoryIndexResponse* response) {
  for (const std::string& name : models_->Names()) {
    for (int64_t version : models_->Versions(name)) {
      const absl::Status loaded = models_->FindLoaded(name, absl::StrCat(version)).status();
      if (request->ready() && !loaded.ok()) continue;
      inference::RepositoryIndexResponse::ModelIndex* index = response->add_models();
      index->set_name(name);
      index->set_version(absl::StrCat(version));
      index->set_state(loaded.ok() ? "READY" : "UNAVAILABLE");
      index->set_reason(std::string(loaded.message()));
    }
  }
  return RpcCall::Answer(context, absl::OkStatus());
}

grpc::ServerUnaryReactor* InferenceService::ModelInfer(grpc::CallbackServerContext* context,
                                                       const grpc::ByteBuffer* request,
                                                       grpc::ByteBuffer* response) {
  return RpcCall::Start(context, scheduler_, [this, request, response](const RpcCall& call) {
    return Infer(*request, call, response);
  });
}

absl::Status InferenceService::Infer(const grpc::ByteBuffer& request, const RpcCall& call,
                                     grpc::ByteBuffer* response) const {
  InferRequest decoded;
  ABSL_RETURN_IF_ERROR(decoded.Parse(request));
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served,
                        models_->FindLoaded(decoded.model_name(), decoded.model_version()));
  const Model& model = *served->model;
  ABSL_RETURN_IF_ERROR(decoded.Bind(model.signature()));

  ABSL_ASSIGN_OR_RETURN(
      std::vector<OutputTensor> outputs,
      model.Run(decoded.inputs(), decoded.outputs(), call.LimitsOfWork(max_message_bytes_)));

  inference::ModelInferResponse head;
  head.set_model_name(served->name);
  head.set_model_version(absl::StrCat(served->version));
  head.set_id(decoded.id());
  *response = EncodeInferResponse(std::move(head), model.signature(), std::move(outputs));
  return absl::OkStatus();
}

}  // namespace tilewire::service
