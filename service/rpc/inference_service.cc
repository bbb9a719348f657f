// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/inference_service.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "service/observe/steady_time.h"
#include "service/rpc/parsed_request.h"
#include "service/rpc/unary_call.h"
#include "service/version.h"
#include "service/wire/request_decoder.h"
#include "service/wire/response_encoder.h"
#include "service/wire/shape_error.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

constexpr char kTypedContents[] = "a request's typed contents (raw ones need no copy)";

void DescribeTensor(const TensorSpec& spec,
                    inference::ModelMetadataResponse::TensorMetadata* tensor) {
  tensor->set_name(spec.name);
  tensor->set_datatype(std::string(DatatypeName(spec.type)));
  for (int64_t dim : spec.dims) tensor->add_shape(dim);
  if (spec.any_rank) tensor->add_shape(-1);  // the protocol has no word for an open rank
}

}  // namespace

// Serves one call after the other, so that its memory is there when a request comes.
class InferJob final : public Job {
 public:
  explicit InferJob(IdleSlots<InferJob>* idle) : idle_(idle) {}

  static OwnedJob Start(IdleSlots<InferJob>* idle, ModelRepository* models, const CallHost& host,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
    std::unique_ptr<InferJob> job = idle->Take();
    if (job == nullptr) job = std::make_unique<InferJob>(idle);
    job->models_ = models;
    job->answers_ = host.answers;
    job->request_ = &request;
    job->response_ = response;
    return OwnedJob(job.release());
  }

  absl::Status Prepare(WorkTerms* terms) override {
    ABSL_RETURN_IF_ERROR(Parse(terms->ticket));
    ABSL_ASSIGN_OR_RETURN(served_,
                          models_->FindLoaded(decoded_.model_name(), decoded_.model_version()));
    terms->model = served_->name;
    ABSL_RETURN_IF_ERROR(decoded_.Bind(served_->tensors.signature()));
    ABSL_RETURN_IF_ERROR(
        CheckBatch(served_->tensors.signature(), decoded_.inputs(), served_->max_batch));
    ABSL_RETURN_IF_ERROR(served_->tensors.ToModel(decoded_.mutable_inputs(), decoded_.outputs()));
    if (const int64_t more = decoded_.BytesBeyondMessage(); more > 0 && terms->ticket != nullptr) {
      ABSL_RETURN_IF_ERROR(terms->ticket->Charge(more, kTypedContents));
    }
    const Model& model = *served_->model;
    terms->cost_key = CostKey(*served_, decoded_.inputs());
    terms->time_varies = model.TimeVaries();
    terms->priority = decoded_.priority();
    terms->deadline = std::min(terms->deadline, SteadyNow() + decoded_.timeout());
    terms->may_run_serially = true;
    if (decoded_.timing()) prepared_ = SteadyNow();
    return absl::OkStatus();
  }

  std::optional<int64_t> Operations() const override {
    return served_->model->PlannedOperations(decoded_.inputs());
  }

  absl::Status Run(UnaryCall& call) override {
    const Model& model = *served_->model;
    const absl::Time started = decoded_.timing() ? SteadyNow() : absl::Time();
    TimesOfRequest times;
    RunOptions options = call.LimitsOfWork();
    if (decoded_.timing()) options.reorder_time = &times.reorder;
    absl::StatusOr<std::vector<OutputTensor>> outputs =
        model.Run(decoded_.inputs(), decoded_.outputs(), options);
    if (!outputs.ok()) {
      return WithBatches(models_->AfterRun(served_, outputs.status()), model.signature(),
                         decoded_.inputs());
    }
    ABSL_RETURN_IF_ERROR(served_->tensors.FromModel(&*outputs));
    if (decoded_.timing()) {
      times.queue = started - prepared_;
      times.compute = SteadyNow() - started;
    }
    EncodeInferResponse({served_->name, served_->version, decoded_.id()}, model.signature(),
                        *std::move(outputs), answers_, decoded_.timing() ? &times : nullptr,
                        response_);
    return absl::OkStatus();
  }

  void Release() override {
    decoded_.Clear();
    served_ = nullptr;
    idle_->Keep(std::unique_ptr<InferJob>(this));
  }

 private:
  absl::Status Parse(Ticket* ticket) {
    PassingCharge copy(ticket);
    return decoded_.Parse(*request_,
                          [&copy](int64_t bytes) { return copy.Add(bytes, kTypedContents); });
  }

  IdleSlots<InferJob>* const idle_;
  ModelRepository* models_ = nullptr;
  AnswerPool* answers_ = nullptr;
  const grpc::ByteBuffer* request_ = nullptr;
  grpc::ByteBuffer* response_ = nullptr;
  InferRequest decoded_;
  absl::Time prepared_;  // of a request that asks for times
  std::shared_ptr<const ServedModel> served_;
};

InferenceService::InferenceService(ModelRepository* models, const CallHost& host, Health health)
    : models_(models),
      host_(host),
      health_(std::move(health)),
      idle_jobs_(std::make_unique<IdleSlots<InferJob>>()) {
  using Self = InferenceService;
  methods_.Add("ServerLive", this, &Self::RequestServerLive, &Self::ServerLive);
  methods_.Add("ServerReady", this, &Self::RequestServerReady, &Self::ServerReady);
  methods_.Add("ModelReady", this, &Self::RequestModelReady, &Self::ModelReady);
  methods_.Add("ServerMetadata", this, &Self::RequestServerMetadata, &Self::ServerMetadata);
  methods_.Add("ModelMetadata", this, &Self::RequestModelMetadata, &Self::ModelMetadata);
  methods_.Add("RepositoryIndex", this, &Self::RequestRepositoryIndex, &Self::RepositoryIndex);
  methods_.Add("ModelInfer", this, &Self::RequestModelInfer, &Self::ModelInfer);
}

InferenceService::~InferenceService() = default;

InferenceService::JobOrAnswer InferenceService::ServerLive(const Bytes& request, Bytes* response) {
  return AnswerNames<inference::ServerLiveRequest, inference::ServerLiveResponse>(
      host_, request, response, [this](const auto&, auto* answer) {
        answer->set_live(health_.live());
        return absl::OkStatus();
      });
}

InferenceService::JobOrAnswer InferenceService::ServerReady(const Bytes& request, Bytes* response) {
  return AnswerNames<inference::ServerReadyRequest, inference::ServerReadyResponse>(
      host_, request, response, [this](const auto&, auto* answer) {
        answer->set_ready(health_.ready());
        return absl::OkStatus();
      });
}

InferenceService::JobOrAnswer InferenceService::ModelReady(const Bytes& request, Bytes* response) {
  return AnswerNames<inference::ModelReadyRequest, inference::ModelReadyResponse>(
      host_, request, response, [this](const auto& asked, auto* answer) -> absl::Status {
        const auto served = models_->Find(asked.name(), asked.version());
        if (absl::IsNotFound(served.status())) return absl::OkStatus();  // not ready (yet)
        ABSL_RETURN_IF_ERROR(served.status());
        answer->set_ready((*served)->state == ModelState::kReady && !health_.draining());
        return absl::OkStatus();
      });
}

InferenceService::JobOrAnswer InferenceService::ServerMetadata(const Bytes& request,
                                                               Bytes* response) {
  return AnswerNames<inference::ServerMetadataRequest, inference::ServerMetadataResponse>(
      host_, request, response, [](const auto&, auto* answer) {
        answer->set_name("tilewire-server");
        answer->set_version(kVersion);
        answer->add_extensions("layout");
        answer->add_extensions("tilewire.v1.PrimitiveService");
        answer->add_extensions("tilewire.v1.ModelService");
        return absl::OkStatus();
      });
}

InferenceService::JobOrAnswer InferenceService::ModelMetadata(const Bytes& request,
                                                              Bytes* response) {
  return AnswerNames<inference::ModelMetadataRequest, inference::ModelMetadataResponse>(
      host_, request, response,
      [this](const auto& asked, auto* answer) { return Describe(asked, answer); });
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
  const ModelSignature& signature = served->tensors.signature();
  for (const TensorSpec& spec : signature.inputs) DescribeTensor(spec, response->add_inputs());
  for (const TensorSpec& spec : signature.outputs) DescribeTensor(spec, response->add_outputs());
  (*response->mutable_properties())["precision"] = std::string(PrecisionName(served->precision));
  if (!served->labels.empty()) (*response->mutable_properties())["labels"] = served->labels;
  return absl::OkStatus();
}

InferenceService::JobOrAnswer InferenceService::RepositoryIndex(const Bytes& request,
                                                                Bytes* response) {
  return AnswerNames<inference::RepositoryIndexRequest, inference::RepositoryIndexResponse>(
      host_, request, response, [this](const auto& asked, auto* answer) {
        ListModels(asked, answer);
        return absl::OkStatus();
      });
}

void InferenceService::ListModels(const inference::RepositoryIndexRequest& request,
                                  inference::RepositoryIndexResponse* response) const {
  for (const std::shared_ptr<const ServedModel>& served : models_->All()) {
    if (request.ready() && served->state != ModelState::kReady) continue;
    inference::RepositoryIndexResponse::ModelIndex* index = response->add_models();
    index->set_name(served->name);
    index->set_version(absl::StrCat(served->version));
    index->set_state(std::string(ModelStateName(served->state)));
    index->set_reason(ReasonOf(*served));
  }
}

InferenceService::JobOrAnswer InferenceService::ModelInfer(const Bytes& request, Bytes* response) {
  return InferJob::Start(idle_jobs_.get(), models_, host_, request, response);
}

}  // namespace tilewire::service
