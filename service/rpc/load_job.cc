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
#include "service/wire/request_parameters.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using Parameter = inference::ModelRepositoryParameter;
using Config = inference::ModelConfig;

// The largest config, as for a config.pbtxt.
constexpr size_t kMostConfigBytes = 64 << 10;

absl::StatusOr<std::shared_ptr<const Config>> ParseConfig(const Parameter& parameter) {
  if (parameter.parameter_choice_case() != Parameter::kStringParam) {
    return InvalidParameter("config", "it is not a string");
  }
  const std::string& text = parameter.string_param();
  if (text.size() > kMostConfigBytes) {
    return InvalidParameter("config", absl::StrCat("it has ", text.size(), " bytes; at most ",
                                                   kMostConfigBytes, " are allowed"));
  }
  auto config = std::make_shared<Config>();
  const auto parsed = google::protobuf::util::JsonStringToMessage(text, config.get());
  if (!parsed.ok()) {
    return InvalidParameter("config", absl::StrCat("it is not a ModelConfig in JSON: ",
                                                   Quoted(std::string(parsed.message()))));
  }
  return config;
}

// A request to the loader, which answers when it is done.
template <typename Request, typename Response>
class ControlJob : public Job {
 public:
  ControlJob(ModelControl* control, const CallHost& host, const grpc::ByteBuffer& request,
             grpc::ByteBuffer* response)
      : control_(control), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) final {
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request_));
    terms->model = request_.model_name();
    if (control_ == nullptr)
      return absl::FailedPreconditionError("this server loads no models by request");
    for (const auto& [name, parameter] : request_.parameters())
      ABSL_RETURN_IF_ERROR(Take(name, parameter));
    return absl::OkStatus();
  }
  bool IsAwaited() const final { return true; }
  void Start(std::function<void(const absl::Status&)> done) final {
    const std::string name = request_.model_name();  // `done` may end the job before Ask() returns
    Ask(control_, name, std::move(done));
  }
  absl::Status Run(Call&) final {
    return SerializeAnswer(Response(), host_.max_message_bytes, response_);
  }

 private:
  virtual absl::Status Take(const std::string& name, const Parameter& parameter) = 0;
  virtual void Ask(ModelControl* control, const std::string& name, ModelControl::Done done) = 0;

  ModelControl* const control_;
  const CallHost& host_;
  const grpc::ByteBuffer& bytes_;
  grpc::ByteBuffer* const response_;
  Request request_;
};

class LoadJob final : public ControlJob<inference::RepositoryModelLoadRequest,
                                        inference::RepositoryModelLoadResponse> {
 public:
  using ControlJob::ControlJob;

 private:
  absl::Status Take(const std::string& name, const Parameter& parameter) override {
    if (absl::StartsWith(name, "file:")) {
      return absl::PermissionDeniedError(
          absl::StrCat("parameter ", Quoted(name), ": this server takes no files of models"));
    }
    if (name != "config") return InvalidParameter(name, "unknown; known is 'config'");
    ABSL_ASSIGN_OR_RETURN(config_, ParseConfig(parameter));
    return absl::OkStatus();
  }
  void Ask(ModelControl* control, const std::string& name, ModelControl::Done done) override {
    control->Load(name, config_, std::move(done));
  }

  std::shared_ptr<const Config> config_;
};

class UnloadJob final : public ControlJob<inference::RepositoryModelUnloadRequest,
                                          inference::RepositoryModelUnloadResponse> {
 public:
  using ControlJob::ControlJob;

 private:
  absl::Status Take(const std::string& name, const Parameter& parameter) override {
    if (name != "unload_dependents") {
      return InvalidParameter(name, "unknown; known is 'unload_dependents'");
    }
    if (parameter.parameter_choice_case() != Parameter::kBoolParam) {
      return InvalidParameter(name, "it is not true or false");
    }
    return absl::OkStatus();
  }
  void Ask(ModelControl* control, const std::string& name, ModelControl::Done done) override {
    control->Unload(name, std::move(done));
  }
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
