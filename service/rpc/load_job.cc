// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/load_job.h"

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "protos/model_config.pb.h"
#include "protos/open_inference.pb.h"
#include "service/rpc/parsed_request.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using Parameter = inference::ModelRepositoryParameter;
using Config = inference::ModelConfig;

// The largest config, as for a config.pbtxt.
constexpr size_t kMostConfigBytes = 64 << 10;

absl::Status InvalidOption(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("parameter ", Quoted(name), ": ", why));
}

absl::StatusOr<std::shared_ptr<const Config>> ParseConfig(const Parameter& parameter) {
  if (parameter.parameter_choice_case() != Parameter::kStringParam) {
    return InvalidOption("config", "it is not a string");
  }
  const std::string& text = parameter.string_param();
  if (text.size() > kMostConfigBytes) {
    return InvalidOption("config", absl::StrCat("it has ", text.size(), " bytes; at most ",
                                                kMostConfigBytes, " are allowed"));
  }
  auto config = std::make_shared<Config>();
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, config.get());
  if (!parsed.ok()) {
    return InvalidOption("config", absl::StrCat("it is not a ModelConfig in JSON: ",
                                                Quoted(std::string(parsed.message()))));
  }
  return config;
}

class LoadJob final : public Job {
 public:
  LoadJob(ModelControl* control, const CallHost& host, const grpc::ByteBuffer& request,
          grpc::ByteBuffer* response)
      : control_(control), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request_));
    terms->model = request_.model_name();
    if (control_ == nullptr) return NoLoads();
    for (const auto& [name, parameter] : request_.parameters()) {
      if (absl::StartsWith(name, "file:")) {
        return absl::PermissionDeniedError(
            absl::StrCat("parameter ", Quoted(name), ": this server takes no files of models"));
      }
      if (name != "config") return InvalidOption(name, "unknown; known is 'config'");
      ABSL_ASSIGN_OR_RETURN(config_, ParseConfig(parameter));
    }
    return absl::OkStatus();
  }
  bool IsAwaited() const override { return true; }
  void Start(std::function<void(const absl::Status&)> done) override {
    // `done` may end the job before Load() returns.
    const std::string name = request_.model_name();
    control_->Load(name, config_, std::move(done));
  }
  absl::Status Run(Call&) override {
    return SerializeAnswer(inference::RepositoryModelLoadResponse(), host_.max_message_bytes,
                           response_);
  }

  static absl::Status NoLoads() {
    return absl::FailedPreconditionError("this server loads no models by request");
  }

 private:
  ModelControl* const control_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  inference::RepositoryModelLoadRequest request_;
  std::shared_ptr<const Config> config_;
};

class UnloadJob final : public Job {
 public:
  UnloadJob(ModelControl* control, const CallHost& host, const grpc::ByteBuffer& request,
            grpc::ByteBuffer* response)
      : control_(control), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) override {
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request_));
    terms->model = request_.model_name();
    if (control_ == nullptr) return LoadJob::NoLoads();
    for (const auto& [name, parameter] : request_.parameters()) {
      if (name != "unload_dependents") {
        return InvalidOption(name, "unknown; known is 'unload_dependents'");
      }
      if (parameter.parameter_choice_case() != Parameter::kBoolParam) {
        return InvalidOption(name, "it is not true or false");
      }
    }
    return absl::OkStatus();
  }
  bool IsAwaited() const override { return true; }
  void Start(std::function<void(const absl::Status&)> done) override {
    const std::string name = request_.model_name();  // as above
    control_->Unload(name, std::move(done));
  }
  absl::Status Run(Call&) override {
    return SerializeAnswer(inference::RepositoryModelUnloadResponse(), host_.max_message_bytes,
                           response_);
  }

 private:
  ModelControl* const control_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  inference::RepositoryModelUnloadRequest request_;
};

}  // namespace

OwnedJob LoadModelJob(ModelControl* control, const CallHost& host, const grpc::ByteBuffer& request,
                      grpc::ByteBuffer* response) {
  return OwnedJob(new LoadJob(control, host, request, response));
}

OwnedJob UnloadModelJob(ModelControl* control, const CallHost& host,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  return OwnedJob(new UnloadJob(control, host, request, response));
}

}  // namespace tilewire::service
