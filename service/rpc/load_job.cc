// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/load_job.h"

#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/util/json_util.h"
#include "protos/model_config.pb.h"
#include "protos/open_inference.pb.h"
#include "service/models/repository_scan.h"
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

constexpr char kFilePrefix[] = "file:";
constexpr size_t kLongestFileName = 128;
constexpr char kFileRule[] =
    "a file is file:<version>/<name>, a version from 0 to 2^63-1, and a name of at most 128 "
    "letters, digits, '.', '_' and '-', which is not '.' or '..'";

// Whether the text after the prefix is <version>/<name>, with nothing in it that leads elsewhere.
bool ParseFileName(absl::string_view parameter, UploadedFile* file) {
  absl::ConsumePrefix(&parameter, kFilePrefix);
  const size_t slash = parameter.find('/');
  if (slash == absl::string_view::npos || !ParseVersion(parameter.substr(0, slash), &file->version))
    return false;
  const absl::string_view name = parameter.substr(slash + 1);
  const bool is_plain = absl::c_all_of(name, [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
  if (!is_plain || name.empty() || name.size() > kLongestFileName || name == "." || name == "..")
    return false;
  file->name = std::string(name);
  return true;
}

// As Triton begins what its clients look for: "failed to load 'cats': ...".
absl::Status OfModel(const char* what, const std::string& model, const absl::Status& status) {
  if (status.ok()) return status;
  return absl::Status(status.code(),
                      absl::StrCat("failed to ", what, " ", Quoted(model), ": ", status.message()));
}

// A request to the loader, which answers when it is done.
template <typename Request, typename Response>
class ControlJob : public Job {
 public:
  // `what`: to "load" or "unload".
  ControlJob(const char* what, ModelControl* control, const CallHost& host,
             const grpc::ByteBuffer& request, grpc::ByteBuffer* response)
      : what_(what), control_(control), host_(host), bytes_(request), response_(response) {}

  absl::Status Prepare(WorkTerms* terms) final {
    ABSL_RETURN_IF_ERROR(ParseLimited(bytes_, &request_));
    terms->model = request_.model_name();
    return OfModel(what_, request_.model_name(), TakeAll());
  }
  bool IsAwaited() const final { return true; }
  void Start(std::function<void(const absl::Status&)> done) final {
    const std::string name = request_.model_name();  // `done` may end the job before Ask() returns
    Ask(control_, name, [what = what_, name, done = std::move(done)](const absl::Status& status) {
      done(OfModel(what, name, status));
    });
  }
  absl::Status Run(Call&) final {
    return SerializeAnswer(Response(), host_.max_message_bytes, response_);
  }

 private:
  absl::Status TakeAll() {
    if (control_ == nullptr)
      return absl::FailedPreconditionError("this server loads no models by request");
    for (auto& [name, parameter] : *request_.mutable_parameters())
      ABSL_RETURN_IF_ERROR(Take(*control_, name, &parameter));
    return Complete();
  }
  // Takes one parameter, and may move what it holds.
  virtual absl::Status Take(const ModelControl& control, const std::string& name,
                            Parameter* parameter) = 0;
  virtual absl::Status Complete() { return absl::OkStatus(); }  // all have been taken
  virtual void Ask(ModelControl* control, const std::string& name, ModelControl::Done done) = 0;

  const char* const what_;
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
  absl::Status Take(const ModelControl& control, const std::string& name,
                    Parameter* parameter) override {
    if (absl::StartsWith(name, kFilePrefix)) return TakeFile(control, name, parameter);
    if (name != "config")
      return InvalidParameter(name, "unknown; known are 'config' and 'file:<version>/<name>'");
    ABSL_ASSIGN_OR_RETURN(config_, ParseConfig(*parameter));
    return absl::OkStatus();
  }
  absl::Status TakeFile(const ModelControl& control, const std::string& name,
                        Parameter* parameter) {
    if (control.MostUploadBytes() == 0) {
      return absl::PermissionDeniedError(absl::StrCat(
          "parameter ", Quoted(name), ": this server takes no files of models (--upload_dir)"));
    }
    UploadedFile file;
    if (!ParseFileName(name, &file)) return InvalidParameter(name, kFileRule);
    if (!named_.emplace(file.version, file.name).second)
      return InvalidParameter(name, "another parameter is the same file");
    if (parameter->parameter_choice_case() != Parameter::kBytesParam)
      return InvalidParameter(name, "it is not bytes");
    upload_bytes_ += static_cast<int64_t>(parameter->bytes_param().size());
    if (upload_bytes_ > control.MostUploadBytes()) {
      return absl::ResourceExhaustedError(absl::StrCat("the files have more than ",
                                                       control.MostUploadBytes(),
                                                       " bytes together (--max_upload_mb)"));
    }
    file.bytes = std::move(*parameter->mutable_bytes_param());
    files_.push_back(std::move(file));
    return absl::OkStatus();
  }
  absl::Status Complete() override {
    if (files_.empty() || config_ != nullptr) return absl::OkStatus();
    return absl::InvalidArgumentError("files of a model come with its parameter 'config'");
  }
  void Ask(ModelControl* control, const std::string& name, ModelControl::Done done) override {
    control->Load(name, config_, std::move(files_), std::move(done));
  }

  std::shared_ptr<const Config> config_;
  std::vector<UploadedFile> files_;
  std::set<std::pair<int64_t, std::string>> named_;  // `files_`
  int64_t upload_bytes_ = 0;
};

class UnloadJob final : public ControlJob<inference::RepositoryModelUnloadRequest,
                                          inference::RepositoryModelUnloadResponse> {
 public:
  using ControlJob::ControlJob;

 private:
  absl::Status Take(const ModelControl&, const std::string& name, Parameter* parameter) override {
    if (name != "unload_dependents") {
      return InvalidParameter(name, "unknown; known is 'unload_dependents'");
    }
    if (parameter->parameter_choice_case() != Parameter::kBoolParam) {
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
  return OwnedJob(new LoadJob("load", control, host, request, response));
}

OwnedJob UnloadModelJob(ModelControl* control, const CallHost& host,
                        const grpc::ByteBuffer& request, grpc::ByteBuffer* response) {
  return OwnedJob(new UnloadJob("unload", control, host, request, response));
}

}  // namespace tilewire::service
