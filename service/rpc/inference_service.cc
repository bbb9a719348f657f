// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/inference_service.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/tuning_text.h"
#include "service/rpc/answers/config_answer.h"
#include "service/rpc/answers/statistics_answer.h"
#include "service/rpc/infer_job.h"
#include "service/rpc/load_job.h"
#include "service/rpc/settings.h"
#include "service/version.h"
#include "service/wire/response_encoder.h"
#include "service/wire/status_text.h"
#include "service/wire/tensor_layout.h"

namespace tilewire::service {
namespace {

consteval const Method& Row(absl::string_view rpc) {
  return MethodNamed("inference.GRPCInferenceService", rpc);
}

// Extensions of the protocol that the server has whatever its flags are.
constexpr const char* kExtensions[] = {"classification", "model_configuration", "layout",
                                       "logging",        "schedule_policy",     "statistics",
                                       "trace"};

void DescribeTensor(const TensorSpec& spec,
                    inference::ModelMetadataResponse::TensorMetadata* tensor) {
  tensor->set_name(spec.name);
  tensor->set_datatype(std::string(DatatypeName(spec.type)));
  for (int64_t dim : spec.dims) tensor->add_shape(dim);
  if (spec.any_rank) tensor->add_shape(-1);  // the protocol has no word for an open rank
}

}  // namespace

InferenceService::InferenceService(ModelRepository* models, const CallHost& host, Terms terms)
    : models_(models),
      host_(host),
      terms_(std::move(terms)),
      idle_jobs_(std::make_unique<IdleSlots<InferJob>>()),
      streams_(StreamTerms()) {
  AddServer();
  AddModels();
  AddRepository();
  AddSettings();
  AddSharedMemory();
  methods_.Add(Row("ModelInfer"), this, &InferenceService::RequestModelInfer,
               Infer(/*in_stream=*/false));
}

InferenceService::~InferenceService() = default;

void InferenceService::Await(CallQueue* queue) {
  methods_.Await(&host_, queue);
  streams_.Await(&host_, queue);
}

ServeFunction InferenceService::Infer(bool in_stream) {
  const InferJob::Setting setting = {
      .idle = idle_jobs_.get(), .models = models_, .in_stream = in_stream};
  return [this, setting](const Call&, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
    return InferJob::Start(setting, host_, request, response);
  };
}

StreamMethod::Terms InferenceService::StreamTerms() {
  return {.row = &Row("ModelStreamInfer"),
          .ask =
              [this](grpc::ServerContext* context, StreamMethod::Stream* stream,
                     grpc::ServerCompletionQueue* queue, Event* arrived) {
                RequestModelStreamInfer(context, stream, queue, queue, arrived->tag());
              },
          .serve = Infer(/*in_stream=*/true),
          .encode_error = EncodeStreamError,
          .ends_with_code = "triton_grpc_error",
          .in_flight = terms_.stream_in_flight};
}

// A method whose request holds names and numbers; `work(request, answer)` answers it.
#define TILEWIRE_ADD(rpc, ...)                                          \
  methods_.AddNames<inference::rpc##Request, inference::rpc##Response>( \
      Row(#rpc), &host_, this, &InferenceService::Request##rpc, __VA_ARGS__)

void InferenceService::AddServer() {
  TILEWIRE_ADD(ServerLive, [this](const auto&, auto* answer) {
    answer->set_live(terms_.live());
    return absl::OkStatus();
  });
  TILEWIRE_ADD(ServerReady, [this](const auto&, auto* answer) {
    answer->set_ready(terms_.ready());
    return absl::OkStatus();
  });
  TILEWIRE_ADD(ServerMetadata, [this](const auto&, auto* answer) {
    answer->set_name("tilewire-server");
    answer->set_version(kVersion);
    for (const char* extension : kExtensions) answer->add_extensions(extension);
    if (TakesLoads()) answer->add_extensions("model_repository");
    for (const std::string& service : terms_.services) answer->add_extensions(service);
    return absl::OkStatus();
  });
}

// Whether some client's load or unload would be more than refused.
bool InferenceService::TakesLoads() const {
  const ModelControl* const control = control_.load();
  return host_.open_rights.Has(Right::kRepository) && control != nullptr &&
         control->TakesRequests();
}

void InferenceService::AddModels() {
  TILEWIRE_ADD(ModelReady,
               [this](const auto& asked, auto* answer) { return TellReady(asked, answer); });
  TILEWIRE_ADD(ModelMetadata,
               [this](const auto& asked, auto* answer) { return Describe(asked, answer); });
  TILEWIRE_ADD(ModelStatistics, [this](const auto& asked, auto* answer) {
    return AnswerStatistics(*models_, asked, answer);
  });
  TILEWIRE_ADD(ModelConfig, [this](const auto& asked, auto* answer) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(const auto served, models_->FindLoaded(asked.name(), asked.version()));
    *answer->mutable_config() = CompletedConfig(*served, terms_.config);
    return absl::OkStatus();
  });
}

void InferenceService::AddRepository() {
  methods_.Add(Row("RepositoryModelLoad"), this, &InferenceService::RequestRepositoryModelLoad,
               [this](const Call&, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
                 return LoadModelJob(control_.load(), host_, request, response);
               });
  methods_.Add(Row("RepositoryModelUnload"), this, &InferenceService::RequestRepositoryModelUnload,
               [this](const Call&, const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
                 return UnloadModelJob(control_.load(), host_, request, response);
               });
  TILEWIRE_ADD(RepositoryIndex, [this](const auto& asked, auto* answer) {
    ListModels(asked, answer);
    return absl::OkStatus();
  });
}

void InferenceService::AddSettings() {
  const auto origin_of = [](const Call& call) { return [&call] { return call.Origin(); }; };
  TILEWIRE_ADD(LogSettings, [this, origin_of](const Call& call, const auto& asked, auto* answer) {
    return AnswerLogSettings({host_.open_rights, origin_of(call)}, asked, answer);
  });
  TILEWIRE_ADD(
      TraceSetting,
      [this, origin_of](const Call& call, const auto& asked, auto* answer) -> absl::Status {
        if (!asked.model_name().empty()) {
          ABSL_RETURN_IF_ERROR(models_->Find(asked.model_name(), "").status());
        }
        return AnswerTraceSetting({host_.open_rights, origin_of(call)}, host_.tracer, asked,
                                  answer);
      });
}

// There are no regions: all of them are unregistered, and the status of all is empty.
void InferenceService::AddSharedMemory() {
  const auto no_region = [](const auto& asked, auto*) -> absl::Status {
    if (asked.name().empty()) return absl::OkStatus();
    return absl::NotFoundError(absl::StrCat("no region ", Quoted(asked.name()), " is registered"));
  };
  const auto nothing = [](const auto&, auto*) { return absl::OkStatus(); };
  TILEWIRE_ADD(SystemSharedMemoryStatus, no_region);
  TILEWIRE_ADD(SystemSharedMemoryUnregister, nothing);
  TILEWIRE_ADD(SystemSharedMemoryRegister, [](const auto& asked, auto*) {
    return absl::UnimplementedError(
        absl::StrCat("region ", Quoted(asked.name()),
                     ": tensors travel in messages only, not in shared memory"));
  });
  TILEWIRE_ADD(CudaSharedMemoryStatus, no_region);
  TILEWIRE_ADD(CudaSharedMemoryUnregister, nothing);
  TILEWIRE_ADD(CudaSharedMemoryRegister, [](const auto& asked, auto*) {
    return absl::UnimplementedError(
        absl::StrCat("region ", Quoted(asked.name()), ": this server has no CUDA device"));
  });
}

#undef TILEWIRE_ADD

// As Triton does: what is not known yet may be waited for.
absl::Status InferenceService::TellReady(const inference::ModelReadyRequest& request,
                                         inference::ModelReadyResponse* response) const {
  const auto served = models_->Find(request.name(), request.version());
  if (!served.ok() && !absl::IsNotFound(served.status())) return served.status();
  response->set_ready(served.ok() && (*served)->state == ModelState::kReady && !terms_.draining());
  return absl::OkStatus();
}

namespace {

// How exactly its products are computed, and what a tuning says of that.
void DescribePrecision(const ServedModel& served,
                       google::protobuf::Map<std::string, std::string>* properties) {
  const TuningFacts* tuning = served.model == nullptr ? nullptr : served.model->tuning();
  if (tuning == nullptr) {
    (*properties)["precision"] = std::string(PrecisionName(served.precision));
    return;
  }
  (*properties)["precision"] = "tuned";
  (*properties)["tuned_budget"] = tuning->budget;
  (*properties)["tuned_error"] = tuning->held_out_error;
  (*properties)["tuned_layers"] = LayersText(*tuning);
  if (tuning->rows > 0) (*properties)["tuned_rows"] = absl::StrCat(tuning->rows, " layers");
}

}  // namespace

absl::Status InferenceService::Describe(const inference::ModelMetadataRequest& request,
                                        inference::ModelMetadataResponse* response) const {
  ABSL_ASSIGN_OR_RETURN(const std::shared_ptr<const ServedModel> served,
                        models_->FindLoaded(request.name(), request.version()));
  response->set_name(served->name);
  for (int64_t version : models_->Versions(served->name)) {
    response->add_versions(absl::StrCat(version));
  }
  response->set_platform(PlatformOf(*served));
  const ModelSignature& signature = served->tensors.signature();
  for (const TensorSpec& spec : signature.inputs) DescribeTensor(spec, response->add_inputs());
  for (const TensorSpec& spec : signature.outputs) DescribeTensor(spec, response->add_outputs());
  DescribePrecision(*served, response->mutable_properties());
  if (!served->labels.empty()) (*response->mutable_properties())["labels"] = served->labels;
  return absl::OkStatus();
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

}  // namespace tilewire::service
