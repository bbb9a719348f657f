// SPDX-License-Identifier: Apache-2.0
//
// Client of a Tilewire server, or of any server of the Open Inference Protocol v2:
//
//   auto client = client::Client::Connect("127.0.0.1:8001");
//   auto image = client::Tensor::FromFloats("image", {1, 24, 20, 3}, pixels,
//                                           client::Layout::kNhwc);
//   auto result = (*client)->Infer("digits", {image});
//   absl::Span<const float> logits = *result->Find("logits")->View<float>();
//
// An address may be several: "a:8001,b:8001", or a name with several addresses, are replicas that
// take turns. What one refuses as UNAVAILABLE is tried on the next one, after the pause that it
// asks for (ConnectOptions::attempts).
//
// Errors of the server come back as the absl::Status of the same code, with its message unchanged.
// The rest:
//   kUnavailable       no server answers at the address, which the message names
//   kDeadlineExceeded  no answer within the deadline
#ifndef CLIENT_CLIENT_H_
#define CLIENT_CLIENT_H_

#include <functional>
#include <future>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "client/connection.h"
#include "client/tensor.h"
#include "protos/model_service.grpc.pb.h"
#include "protos/open_inference.grpc.pb.h"
#include "protos/tilewire.grpc.pb.h"

namespace tilewire::client {

struct ModelMetadata {
  std::string name, platform;
  std::vector<std::string> versions;  // ascending; the last one serves by default
  std::vector<TensorMetadata> inputs, outputs;
  std::map<std::string, std::string> properties;
  std::vector<std::string> Labels()
      const;  // lines of properties["labels"]; empty if there are none
};

struct ModelEntry {
  std::string name, version, state, reason;
};

// An output to answer. A layout other than nchw needs a tensor of rank 3 to 5.
struct OutputRequest {
  std::string name;
  Layout layout = Layout::kNchw;
};
// All outputs of a model; those that have one in `layout`.
std::vector<OutputRequest> AllOutputs(const ModelMetadata& metadata, Layout layout);

struct InferOptions {
  std::string version;                 // empty: the default
  std::vector<OutputRequest> outputs;  // empty: all, in nchw
  absl::Duration deadline = absl::InfiniteDuration();
  std::string id;  // echoed
};

struct Result {
  std::string model_version, id;
  std::vector<Tensor> outputs;
  const Tensor* Find(absl::string_view name) const;  // nullptr: no such output
};

// The message that Client::Infer() sends.
inference::ModelInferRequest MakeInferRequest(const std::string& model,
                                              const std::vector<Tensor>& inputs,
                                              const InferOptions& options);

// Thread-safe.
class Client {
 public:
  // `address` is one that TargetOf() takes. Waits until a connection stands.
  //   the errors of TargetOf()
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         const ConnectOptions& options = {});
  // Over a channel that exists, such as one within the process.
  explicit Client(std::shared_ptr<grpc::Channel> channel, const ConnectOptions& options = {});
  ~Client();

  absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata();
  // kUnimplemented  the server does not know the extension RepositoryIndex
  absl::StatusOr<std::vector<ModelEntry>> ListModels();
  absl::StatusOr<ModelMetadata> Metadata(const std::string& model, const std::string& version = "");
  // The same, asked for once: kept until the server refuses a request to the model as
  // INVALID_ARGUMENT or NOT_FOUND, because the model may have been replaced.
  absl::StatusOr<std::shared_ptr<const ModelMetadata>> KnownMetadata(
      const std::string& model, const std::string& version = "");
  absl::StatusOr<bool> Ready(const std::string& model, const std::string& version = "");
  absl::StatusOr<Result> Infer(const std::string& model, const std::vector<Tensor>& inputs,
                               const InferOptions& options = {});
  // Infer() without waiting: `done` is called once, on a thread of gRPC's, which it must not hold
  // up. Calls may be under way when the client is destroyed; they end as they would have.
  void InferAsync(const std::string& model, const std::vector<Tensor>& inputs,
                  const InferOptions& options, std::function<void(absl::StatusOr<Result>)> done);
  std::future<absl::StatusOr<Result>> InferAsync(const std::string& model,
                                                 const std::vector<Tensor>& inputs,
                                                 const InferOptions& options = {});
  // grpc.health.v1: OK if `service` (empty: the server as a whole) is SERVING. kUnavailable: the
  // server is not; kFailedPrecondition: the model is not; kNotFound: no such model.
  absl::Status Health(const std::string& service, absl::Duration timeout);

  // Single primitives; see protos/tilewire.proto.
  absl::StatusOr<v1::CreateResponse> Create(const v1::CreateRequest& request);
  absl::StatusOr<v1::ListImplementationsResponse> ListImplementations();
  absl::StatusOr<v1::ExecuteResponse> Execute(const v1::ExecuteRequest& request,
                                              absl::Duration deadline = absl::InfiniteDuration());

  // The plan of a model; see protos/model_service.proto.
  absl::StatusOr<v1::ExplainResponse> Explain(const v1::ExplainRequest& request,
                                              absl::Duration deadline = absl::InfiniteDuration());
  // Where the time of its requests went, and which of them were slow; see the same file.
  absl::StatusOr<v1::LiveProfileResponse> LiveProfile(
      const v1::LiveProfileRequest& request, absl::Duration deadline = absl::InfiniteDuration());
  absl::StatusOr<v1::SlowRequestsResponse> SlowRequests(const v1::SlowRequestsRequest& request);
  // How the server is, and what it has served so far.
  absl::StatusOr<v1::ServerStatusResponse> ServerStatus(
      const v1::ServerStatusRequest& request, absl::Duration deadline = absl::InfiniteDuration());

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  class KnownModels;

  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> inference_;
  const std::unique_ptr<v1::PrimitiveService::Stub> primitives_;
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const absl::Duration timeout_;
  const std::shared_ptr<KnownModels> known_;
};

}  // namespace tilewire::client

#endif  // CLIENT_CLIENT_H_
