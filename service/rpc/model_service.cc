// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/model_service.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/tuning_text.h"
#include "service/observe/steady_time.h"
#include "service/rpc/answers/slow_answer.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/shape_error.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

constexpr int kMostRuns = 1000;
constexpr char kLimit[] =
    "the longest time that the server gives to explaining a plan passed (not the client's "
    "deadline); ask for fewer runs or smaller inputs";

// The dims of each input: those that the request names, else with the batch in the place of an open
// first one. The engine checks them.
absl::StatusOr<std::vector<Dims>> DecodeShapes(const v1::ExplainRequest& request,
                                               const ModelSignature& signature) {
  std::vector<Dims> all;
  for (const TensorSpec& input : signature.inputs) {
    Dims& dims = all.emplace_back(input.dims);
    if (LeavesBatchOpen(dims)) dims[0] = request.batch() == 0 ? 1 : request.batch();
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

void EncodeRefusals(const PlanStep& step, v1::PlanStep* message) {
  for (const StepRefusal& refusal : step.refusals) {
    v1::StepRefusal* encoded = message->add_refusals();
    encoded->set_implementation(refusal.implementation);
    encoded->set_reason(refusal.reason);
    encoded->set_cycles(refusal.cycles);
  }
}

void EncodeStep(const PlanStep& step, double peak_gflops, v1::PlanStep* message) {
  message->set_node(step.node);
  message->set_primitive(step.primitive);
  message->set_implementation(step.implementation);
  message->set_cycles(step.cycles);
  for (const PlanTensor& tensor : step.tensors) {
    v1::PlanTensor* encoded = message->add_tensors();
    encoded->set_argument(tensor.argument);
    encoded->set_layout(tensor.layout);
    encoded->set_size_bytes(tensor.bytes);
  }
  message->set_fused(step.fused);
  message->set_remark(step.remark);
  message->set_precision(step.precision);
  message->set_scratchpad_bytes(step.scratchpad_bytes);
  message->set_operations(step.operations);
  for (const std::string& dump : step.dumps) message->add_dumps(dump);
  message->set_time_ns(absl::ToInt64Nanoseconds(step.time));
  const double nanoseconds = absl::ToDoubleNanoseconds(step.time);
  if (peak_gflops > 0 && nanoseconds > 0) {
    message->set_share_of_peak(static_cast<double>(step.operations) / nanoseconds / peak_gflops);
  }
}

// How exactly the model's products are computed, and the tuning that says so.
template <typename Answer>
void EncodePrecision(const ServedModel& served, Answer* answer) {
  const TuningFacts* tuning = served.model->tuning();
  answer->set_precision(tuning != nullptr ? "tuned" : std::string(PrecisionName(served.precision)));
  if (tuning != nullptr) answer->set_tuning(FactsText(*tuning));
}

class ExplainJob final : public Job {
 public:
  ExplainJob(ModelRepository* models, const CallHost& host, const grpc::ByteBuffer& request,
             grpc::ByteBuffer* response)
      : models_(models), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request_));
    terms->model = request_.model();
    terms->work_class = WorkClass::kBackground;
    terms->deadline = std::min(terms->deadline, SteadyNow() + host_.longest_explanation);
    terms->limit = kLimit;
    ABSL_ASSIGN_OR_RETURN(served_, models_->FindLoaded(request_.model(), request_.version()));
    if (request_.runs() < 0 || request_.runs() > kMostRuns) {
      return absl::InvalidArgumentError(
          absl::StrCat(request_.runs(), " runs, allowed are 0 to ", kMostRuns));
    }
    return absl::OkStatus();
  }

  absl::Status Run(Call& call) override {
    ExplainOptions options{.runs = request_.runs(), .limits = call.LimitsOfWork()};
    ABSL_ASSIGN_OR_RETURN(options.dims, DecodeShapes(request_, served_->model->signature()));
    const absl::StatusOr<Explanation> explanation = served_->model->Explain(options);
    if (!explanation.ok()) return models_->AfterRun(served_, explanation.status());
    v1::ExplainResponse answer;
    Encode(*explanation, &answer);
    return SerializeAnswer(answer, host_.max_message_bytes, response_);
  }

 private:
  void Encode(const Explanation& explanation, v1::ExplainResponse* answer) const {
    const double peak_gflops = explanation.peak_gflops * explanation.threads;
    answer->set_model(served_->name);
    answer->set_version(absl::StrCat(served_->version));
    for (const PlanStep& step : explanation.steps) {
      v1::PlanStep* encoded = answer->add_steps();
      EncodeStep(step, peak_gflops, encoded);
      if (request_.refusals()) EncodeRefusals(step, encoded);
    }
    answer->set_weights_bytes(served_->model->weights_bytes());
    answer->set_activations_bytes(explanation.activations_bytes);
    answer->set_scratchpad_bytes(explanation.scratchpad_bytes);
    answer->set_runs(request_.runs());
    answer->set_run_ns(absl::ToInt64Nanoseconds(explanation.run));
    answer->set_threads(explanation.threads);
    answer->set_peak_gflops(peak_gflops);
    EncodePrecision(*served_, answer);
  }

  ModelRepository* const models_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  v1::ExplainRequest request_;
  std::shared_ptr<const ServedModel> served_;
};

void EncodeLive(const LivePlan& plan, const ModelSignature& signature, v1::LivePlan* message) {
  for (size_t i = 0; i < plan.dims.size() && i < signature.inputs.size(); ++i) {
    v1::ExplainRequest::InputShape* shape = message->add_shapes();
    shape->set_name(signature.inputs[i].name);
    for (int64_t dim : plan.dims[i]) shape->add_dims(dim);
  }
  message->set_later_stage(plan.is_later_stage);
  message->set_runs(plan.runs);
  absl::Duration sum;
  for (const PlanStep& step : plan.steps) {
    sum += step.time;
    EncodeStep(step, 0, message->add_steps());
  }
  message->set_summed_ns(absl::ToInt64Nanoseconds(sum));
}

// Not background work: who asks where the time goes asks while requests wait.
class LiveProfileJob final : public Job {
 public:
  LiveProfileJob(ModelRepository* models, const CallHost& host, const grpc::ByteBuffer& request,
                 grpc::ByteBuffer* response)
      : models_(models), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    v1::LiveProfileRequest request;
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request));
    terms->model = request.model();
    ABSL_ASSIGN_OR_RETURN(served_, models_->FindLoaded(request.model(), request.version()));
    return absl::OkStatus();
  }

  absl::Status Run(Call&) override {
    v1::LiveProfileResponse answer;
    answer.set_model(served_->name);
    answer.set_version(absl::StrCat(served_->version));
    for (const LivePlan& plan : served_->model->LiveProfile()) {
      EncodeLive(plan, served_->model->signature(), answer.add_plans());
    }
    answer.set_weights_bytes(served_->model->weights_bytes());
    EncodePrecision(*served_, &answer);
    return SerializeAnswer(answer, host_.max_message_bytes, response_);
  }

 private:
  ModelRepository* const models_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  std::shared_ptr<const ServedModel> served_;
};

consteval const Method& Row(const char* rpc) {
  return MethodNamed("tilewire.v1.ModelService", rpc);
}

}  // namespace

ModelService::ModelService(ModelRepository* models, const service::SlowRequests* slow,
                           ReadServerNumbers server, const CallHost& host)
    : models_(models), host_(host) {
  methods_.Add(Row("Explain"), this, &ModelService::RequestExplain, &ModelService::Explain);
  methods_.Add(Row("LiveProfile"), this, &ModelService::RequestLiveProfile,
               &ModelService::LiveProfile);
  methods_.AddNames<v1::SlowRequestsRequest, v1::SlowRequestsResponse>(
      Row("SlowRequests"), &host_, this, &ModelService::RequestSlowRequests,
      [models, slow](const auto& asked, auto* answer) {
        return AnswerSlowRequests(*models, *slow, asked, answer);
      });
  methods_.AddNames<v1::ServerStatusRequest, v1::ServerStatusResponse>(
      Row("ServerStatus"), &host_, this, &ModelService::RequestServerStatus,
      [models, server = std::move(server)](const auto& asked, auto* answer) {
        return AnswerServerStatus(*models, server(), asked, answer);
      });
}

UnaryMethods::JobOrAnswer ModelService::LiveProfile(const grpc::ByteBuffer& request,
                                                    grpc::ByteBuffer* response) {
  return OwnedJob(new LiveProfileJob(models_, host_, request, response));
}

UnaryMethods::JobOrAnswer ModelService::Explain(const grpc::ByteBuffer& request,
                                                grpc::ByteBuffer* response) {
  return OwnedJob(new ExplainJob(models_, host_, request, response));
}

}  // namespace tilewire::service
