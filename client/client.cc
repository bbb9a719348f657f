// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <grpcpp/generic/generic_stub.h>

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"
#include "absl/time/clock.h"

namespace tilewire::client {
namespace {

absl::Status ToStatus(const grpc::Status& status) {
  if (status.ok()) return absl::OkStatus();
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

void SetDeadline(absl::Duration timeout, grpc::ClientContext* context) {
  if (timeout == absl::InfiniteDuration()) return;
  context->set_deadline(absl::ToChronoTime(absl::Now() + timeout));
}

// Calls a unary method of a stub: the answer, or the server's error.
template <typename Response, typename Stub, typename Request>
absl::StatusOr<Response> Call(Stub* stub,
                              grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                           Response*),
                              const Request& request, absl::Duration timeout) {
  grpc::ClientContext context;
  SetDeadline(timeout, &context);
  Response response;
  const absl::Status status = ToStatus((stub->*method)(&context, request, &response));
  if (!status.ok()) return status;
  return response;
}

template <typename Wire>
void SetLayout(Layout layout, Wire* tensor) {
  if (layout == Layout::kNchw) return;
  (*tensor->mutable_parameters())["layout"].set_string_param(std::string(LayoutName(layout)));
}

absl::StatusOr<Result> FromWire(inference::ModelInferResponse response) {
  if (response.raw_output_contents_size() != response.outputs_size()) {
    return absl::InternalError(absl::StrCat("the server answered ", response.outputs_size(),
                                            " outputs with ", response.raw_output_contents_size(),
                                            " raw contents"));
  }
  Result result;
  result.model_version = response.model_version();
  result.id = response.id();
  for (int i = 0; i < response.outputs_size(); ++i) {
    const auto& wire = response.outputs(i);
    Tensor tensor;
    tensor.name = wire.name();
    tensor.datatype = wire.datatype();
    tensor.shape.assign(wire.shape().begin(), wire.shape().end());
    const auto layout = wire.parameters().find("layout");
    if (layout != wire.parameters().end() && layout->second.string_param() == "nhwc")
      tensor.layout = Layout::kNhwc;
    tensor.bytes = std::move(*response.mutable_raw_output_contents(i));
    result.outputs.push_back(std::move(tensor));
  }
  return result;
}

template <typename Wire>
std::vector<TensorMetadata> TensorsFromWire(const Wire& wire) {
  std::vector<TensorMetadata> tensors;
  for (const auto& tensor : wire) {
    tensors.push_back(
        {tensor.name(), tensor.datatype(), {tensor.shape().begin(), tensor.shape().end()}});
  }
  return tensors;
}

// Debian has no .proto file of grpc.health.v1; its two messages hold one field each.
grpc::ByteBuffer HealthRequest(const std::string& service) {
  std::string wire;
  if (!service.empty()) {
    wire.push_back('\x0A');  // field 1, length-delimited
    for (size_t rest = service.size();; rest >>= 7) {
      wire.push_back(static_cast<char>((rest & 0x7F) | (rest > 0x7F ? 0x80 : 0)));
      if (rest <= 0x7F) break;
    }
    wire += service;
  }
  const grpc::Slice slice(wire);
  return grpc::ByteBuffer(&slice, 1);
}

// True if the answer is {status: SERVING}.
bool IsServing(const grpc::ByteBuffer& response) {
  grpc::Slice slice;
  if (!response.DumpToSingleSlice(&slice).ok()) return false;
  return slice.size() >= 2 && slice.begin()[0] == 0x08 && slice.begin()[1] == 1;
}

}  // namespace

std::vector<std::string> ModelMetadata::Labels() const {
  const auto labels = properties.find("labels");
  if (labels == properties.end()) return {};
  std::vector<std::string> lines = absl::StrSplit(labels->second, '\n');
  while (!lines.empty() && lines.back().empty()) lines.pop_back();
  return lines;
}

std::vector<OutputRequest> AllOutputs(const ModelMetadata& metadata, Layout layout) {
  std::vector<OutputRequest> outputs;
  for (const TensorMetadata& output : metadata.outputs) {
    const bool has_layout = output.shape.size() >= 3 && output.shape.size() <= 5;
    outputs.push_back({output.name, has_layout ? layout : Layout::kNchw});
  }
  return outputs;
}

const Tensor* Result::Find(absl::string_view name) const {
  for (const Tensor& output : outputs) {
    if (output.name == name) return &output;
  }
  return nullptr;
}

inference::ModelInferRequest MakeInferRequest(const std::string& model,
                                              const std::vector<Tensor>& inputs,
                                              const InferOptions& options) {
  inference::ModelInferRequest request;
  request.set_model_name(model);
  request.set_model_version(options.version);
  request.set_id(options.id);
  for (const Tensor& input : inputs) {
    auto* tensor = request.add_inputs();
    tensor->set_name(input.name);
    tensor->set_datatype(input.datatype);
    tensor->mutable_shape()->Add(input.shape.begin(), input.shape.end());
    SetLayout(input.layout, tensor);
    request.add_raw_input_contents(input.bytes);
  }
  for (const OutputRequest& output : options.outputs) {
    auto* tensor = request.add_outputs();
    tensor->set_name(output.name);
    SetLayout(output.layout, tensor);
  }
  return request;
}

// Metadata by model and version. Thread-safe.
class Client::KnownModels {
 public:
  using Key = std::pair<std::string, std::string>;

  std::shared_ptr<const ModelMetadata> Find(const Key& key) const {
    absl::MutexLock lock(&mutex_);
    const auto found = models_.find(key);
    return found == models_.end() ? nullptr : found->second;
  }
  void Keep(const Key& key, std::shared_ptr<const ModelMetadata> metadata) {
    absl::MutexLock lock(&mutex_);
    models_[key] = std::move(metadata);
  }
  // Forgets a model that a request does not fit, or that has gone.
  void Learn(const Key& key, const absl::Status& status) {
    if (!absl::IsInvalidArgument(status) && !absl::IsNotFound(status)) return;
    absl::MutexLock lock(&mutex_);
    models_.erase(key);
  }

 private:
  mutable absl::Mutex mutex_;
  std::map<Key, std::shared_ptr<const ModelMetadata>> models_ ABSL_GUARDED_BY(mutex_);
};

absl::StatusOr<std::unique_ptr<Client>> Client::Connect(const std::string& address,
                                                        const ConnectOptions& options) {
  const absl::StatusOr<std::string> target = TargetOf(address);
  if (!target.ok()) return target.status();
  auto channel = ChannelTo(*target, options);
  if (!channel->WaitForConnected(absl::ToChronoTime(absl::Now() + options.timeout))) {
    return absl::UnavailableError(absl::StrCat(
        "no server answers at ", address, " within ", absl::FormatDuration(options.timeout),
        options.tls ? " over TLS with a certificate that these roots sign" : " without TLS"));
  }
  return std::make_unique<Client>(std::move(channel), options);
}

Client::Client(std::shared_ptr<grpc::Channel> channel, const ConnectOptions& options)
    : channel_(std::move(channel)),
      inference_(inference::GRPCInferenceService::NewStub(channel_)),
      primitives_(v1::PrimitiveService::NewStub(channel_)),
      models_(v1::ModelService::NewStub(channel_)),
      timeout_(options.timeout),
      known_(std::make_shared<KnownModels>()) {}

Client::~Client() = default;

absl::StatusOr<inference::ServerMetadataResponse> Client::ServerMetadata() {
  return Call(inference_.get(), &inference::GRPCInferenceService::Stub::ServerMetadata,
              inference::ServerMetadataRequest(), timeout_);
}

absl::StatusOr<std::vector<ModelEntry>> Client::ListModels() {
  auto response = Call(inference_.get(), &inference::GRPCInferenceService::Stub::RepositoryIndex,
                       inference::RepositoryIndexRequest(), timeout_);
  if (!response.ok()) return response.status();
  std::vector<ModelEntry> models;
  for (const auto& model : response->models()) {
    models.push_back({model.name(), model.version(), model.state(), model.reason()});
  }
  return models;
}

absl::StatusOr<ModelMetadata> Client::Metadata(const std::string& model,
                                               const std::string& version) {
  inference::ModelMetadataRequest request;
  request.set_name(model);
  request.set_version(version);
  auto response = Call(inference_.get(), &inference::GRPCInferenceService::Stub::ModelMetadata,
                       request, timeout_);
  if (!response.ok()) return response.status();
  ModelMetadata metadata;
  metadata.name = response->name();
  metadata.platform = response->platform();
  metadata.versions.assign(response->versions().begin(), response->versions().end());
  metadata.inputs = TensorsFromWire(response->inputs());
  metadata.outputs = TensorsFromWire(response->outputs());
  metadata.properties.insert(response->properties().begin(), response->properties().end());
  return metadata;
}

absl::StatusOr<bool> Client::Ready(const std::string& model, const std::string& version) {
  inference::ModelReadyRequest request;
  request.set_name(model);
  request.set_version(version);
  auto response =
      Call(inference_.get(), &inference::GRPCInferenceService::Stub::ModelReady, request, timeout_);
  if (!response.ok()) return response.status();
  return response->ready();
}

absl::StatusOr<std::shared_ptr<const ModelMetadata>> Client::KnownMetadata(
    const std::string& model, const std::string& version) {
  std::shared_ptr<const ModelMetadata> known = known_->Find({model, version});
  if (known != nullptr) return known;
  auto metadata = Metadata(model, version);
  if (!metadata.ok()) return metadata.status();
  known = std::make_shared<const ModelMetadata>(*std::move(metadata));
  known_->Keep({model, version}, known);
  return known;
}

absl::StatusOr<Result> Client::Infer(const std::string& model, const std::vector<Tensor>& inputs,
                                     const InferOptions& options) {
  auto response = Call(inference_.get(), &inference::GRPCInferenceService::Stub::ModelInfer,
                       MakeInferRequest(model, inputs, options), options.deadline);
  known_->Learn({model, options.version}, response.status());
  if (!response.ok()) return response.status();
  return FromWire(*std::move(response));
}

void Client::InferAsync(const std::string& model, const std::vector<Tensor>& inputs,
                        const InferOptions& options,
                        std::function<void(absl::StatusOr<Result>)> done) {
  struct Running {
    grpc::ClientContext context;
    inference::ModelInferRequest request;
    inference::ModelInferResponse response;
  };
  auto running = std::make_shared<Running>();
  SetDeadline(options.deadline, &running->context);
  running->request = MakeInferRequest(model, inputs, options);
  inference_->async()->ModelInfer(
      &running->context, &running->request, &running->response,
      [running, known = known_, key = KnownModels::Key(model, options.version),
       done = std::move(done)](const grpc::Status& ended) {
        const absl::Status status = ToStatus(ended);
        known->Learn(key, status);
        done(status.ok() ? FromWire(std::move(running->response)) : absl::StatusOr<Result>(status));
      });
}

std::future<absl::StatusOr<Result>> Client::InferAsync(const std::string& model,
                                                       const std::vector<Tensor>& inputs,
                                                       const InferOptions& options) {
  auto promise = std::make_shared<std::promise<absl::StatusOr<Result>>>();
  InferAsync(model, inputs, options,
             [promise](absl::StatusOr<Result> result) { promise->set_value(std::move(result)); });
  return promise->get_future();
}

absl::Status Client::Health(const std::string& service, absl::Duration timeout) {
  grpc::GenericStub stub(channel_);
  grpc::ClientContext context;
  SetDeadline(timeout, &context);
  const grpc::ByteBuffer request = HealthRequest(service);
  grpc::ByteBuffer response;
  absl::Notification done;
  grpc::Status status;
  stub.UnaryCall(&context, "/grpc.health.v1.Health/Check", {}, &request, &response,
                 [&](grpc::Status result) {
                   status = std::move(result);
                   done.Notify();
                 });
  done.WaitForNotification();
  if (!status.ok() && status.error_code() == grpc::StatusCode::NOT_FOUND)
    return absl::NotFoundError(absl::StrCat("no model '", service, "'"));
  if (!status.ok()) return ToStatus(status);
  if (IsServing(response)) return absl::OkStatus();
  if (service.empty()) return absl::UnavailableError("the server is not serving");
  return absl::FailedPreconditionError(absl::StrCat("'", service, "' is not serving"));
}

absl::StatusOr<v1::CreateResponse> Client::Create(const v1::CreateRequest& request) {
  return Call(primitives_.get(), &v1::PrimitiveService::Stub::Create, request,
              absl::InfiniteDuration());
}

absl::StatusOr<v1::ListImplementationsResponse> Client::ListImplementations() {
  return Call(primitives_.get(), &v1::PrimitiveService::Stub::ListImplementations,
              v1::ListImplementationsRequest(), timeout_);
}

absl::StatusOr<v1::ExecuteResponse> Client::Execute(const v1::ExecuteRequest& request,
                                                    absl::Duration deadline) {
  return Call(primitives_.get(), &v1::PrimitiveService::Stub::Execute, request, deadline);
}

absl::StatusOr<v1::ExplainResponse> Client::Explain(const v1::ExplainRequest& request,
                                                    absl::Duration deadline) {
  return Call(models_.get(), &v1::ModelService::Stub::Explain, request, deadline);
}

absl::StatusOr<v1::LiveProfileResponse> Client::LiveProfile(const v1::LiveProfileRequest& request,
                                                            absl::Duration deadline) {
  return Call(models_.get(), &v1::ModelService::Stub::LiveProfile, request, deadline);
}

absl::StatusOr<v1::SlowRequestsResponse> Client::SlowRequests(
    const v1::SlowRequestsRequest& request) {
  return Call(models_.get(), &v1::ModelService::Stub::SlowRequests, request, timeout_);
}

absl::StatusOr<v1::ServerStatusResponse> Client::ServerStatus(
    const v1::ServerStatusRequest& request, absl::Duration deadline) {
  return Call(models_.get(), &v1::ModelService::Stub::ServerStatus, request, deadline);
}

}  // namespace tilewire::client
