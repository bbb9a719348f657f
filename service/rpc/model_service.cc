// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/model_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

constexpr int kMostRuns = 1000;

// The dims of each input: those that the request names, else with the batch in the place of an open
// first one. The engine checks them.
absl::StatusOr<std::vector<Dims>> DecodeShapes(const v1::ExplainRequest& request,
                                               const ModelSignature& signature) {
  std::vector<Dims> all;
  for (const TensorSpec& input : signature.inputs) {
    Dims& dims = all.emplace_back(input.dims);
    if (!dims.empty() && dims[0] < 0) dims[0] = request.batch() == 0 ? 1 : request.batch();
  }
  std::vector<bool> named(all.size(), false);
  for (const v1::ExplainRequest::InputShape& shape : request.shapes()) {
    size_t i = 0;
    while (i < all.size() && signature.inputs[i].name != shape.name()) ++i;
    if (i == all.size() || named[i]) {
      return absl::InvalidArgumentError(absl::StrCat(
          "input ", Quoted(shape.name()), i == all.size() ? ": no such input" : ": given twice"));
    }
    named[i] = true;
    all[i].assign(shape.dims().begin(), shape.dims().end());
  }
  return all;
}

void EncodeStep(const PlanStep& step, double peak_gflops, v1::PlanStep* message) {
  message->set_node(step.node);
  message->set_primitive(step.primitive);
  message->set_implementation(step.implementation);
  for (const PlanTensor& tensor : step.tensors) {
    v1::PlanTensor* encoded = message->add_tensors();
    encoded->set_argument(tensor.argument);
    encoded->set_layout(tensor.layout);
    encoded->set_size_bytes(tensor.bytes);
  }
  message->set_fused(step.fused);
  message->set_remark(step.remark);
  message->set_operations(step.operations);
  message->set_time_ns(absl::ToInt64Nanoseconds(step.time));
  const double nanoseconds = absl::ToDoubleNanoseconds(step.time);
  if (peak_gflops > 0 && nanoseconds > 0) {
    message->set_share_of_peak(static_cast<double>(step.operations) / nanoseconds / peak_gflops);
  }
}

}  // namespace

grpc::ServerUnaryReactor* ModelService::Explain(grpc::CallbackServerContext* context,
                                                const grpc::ByteBuffer* request,
                                                grpc::ByteBuffer* response) {
  return RpcCall::Start(context, scheduler_, [this, request, response](const RpcCall& call) {
    return AnswerParsed<v1::ExplainRequest, v1::ExplainResponse>(
        *request, max_message_bytes_,
        [&](const auto& parsed, auto* answer) { return DoExplain(parsed, call, answer); },
        response);
  });
}

absl::Status ModelService::DoExplain(const v1::ExplainRequest& request, const RpcCall& call,
                                     v1::ExplainResponse* response) const {
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served,
                        models_->FindLoaded(request.model(), request.version()));
  if (request.runs() < 0 || request.runs() > kMostRuns) {
    return absl::InvalidArgumentError(
        absl::StrCat(request.runs(), " runs, allowed are 0 to ", kMostRuns));
  }
  ExplainOptions options{.runs = request.runs(), .limits = call.LimitsOfWork(max_message_bytes_)};
  ABSL_ASSIGN_OR_RETURN(options.dims, DecodeShapes(request, served->model->signature()));
  ABSL_ASSIGN_OR_RETURN(const Explanation explanation, served->model->Explain(options));
  const double peak_gflops = explanation.peak_gflops * explanation.threads;
  response->set_model(served->name);
  response->set_version(absl::StrCat(served->version));
  for (const PlanStep& step : explanation.steps)
    EncodeStep(step, peak_gflops, response->add_steps());
  response->set_weights_bytes(served->model->weights_bytes());
  response->set_activations_bytes(explanation.activations_bytes);
  response->set_scratchpad_bytes(explanation.scratchpad_bytes);
  response->set_runs(request.runs());
  response->set_run_ns(absl::ToInt64Nanoseconds(explanation.run));
  response->set_threads(explanation.threads);
  response->set_peak_gflops(peak_gflops);
  return absl::OkStatus();
}

}  // namespace tilewire::service
