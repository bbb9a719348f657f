// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/lean_service.h"

#include <cstring>
#include <vector>

#include "engine/base/status_macros.h"

namespace tilewire::bench {
namespace {

absl::Status Infer(const OnnxRuntime::Session& session, const inference::ModelInferRequest& request,
                   inference::ModelInferResponse* response) {
  if (request.inputs_size() != 1 || request.raw_input_contents_size() != 1) {
    return absl::InvalidArgumentError("one raw input is expected");
  }
  const std::string& bytes = request.raw_input_contents(0);
  const auto& shape = request.inputs(0).shape();
  std::vector<float> image(bytes.size() / sizeof(float));
  std::memcpy(image.data(), bytes.data(), image.size() * sizeof(float));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> scores,
                        session.Run(image, {shape.begin(), shape.end()}));
  response->set_model_name(request.model_name());
  inference::ModelInferResponse::InferOutputTensor* output = response->add_outputs();
  output->set_name("scores");
  output->set_datatype("FP32");
  output->add_shape(static_cast<int64_t>(scores.size()));
  response->add_raw_output_contents(scores.data(), scores.size() * sizeof(float));
  return absl::OkStatus();
}

grpc::Status ToGrpc(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  return {static_cast<grpc::StatusCode>(status.code()), std::string(status.message())};
}

}  // namespace

absl::StatusOr<std::unique_ptr<LeanService>> LeanService::Create(const std::string& library,
                                                                 const std::string& model,
                                                                 int threads) {
  std::unique_ptr<LeanService> service(new LeanService);
  ABSL_ASSIGN_OR_RETURN(service->runtime_, OnnxRuntime::Open(library, threads));
  ABSL_ASSIGN_OR_RETURN(service->session_, service->runtime_->Load(model));
  return service;
}

grpc::ServerUnaryReactor* LeanService::ModelInfer(grpc::CallbackServerContext* context,
                                                  const inference::ModelInferRequest* request,
                                                  inference::ModelInferResponse* response) {
  grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
  reactor->Finish(ToGrpc(Infer(*session_, *request, response)));
  return reactor;
}

grpc::Status LeanService::Answer(const grpc::ByteBuffer& request,
                                 grpc::ByteBuffer* response) const {
  inference::ModelInferRequest parsed;
  grpc::ByteBuffer bytes = request;
  grpc::Status status =
      grpc::SerializationTraits<inference::ModelInferRequest>::Deserialize(&bytes, &parsed);
  if (!status.ok()) return status;
  inference::ModelInferResponse answer;
  status = ToGrpc(Infer(*session_, parsed, &answer));
  if (!status.ok()) return status;
  bool own_buffer = false;
  return grpc::SerializationTraits<inference::ModelInferResponse>::Serialize(answer, response,
                                                                             &own_buffer);
}

}  // namespace tilewire::bench
