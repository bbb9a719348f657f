// SPDX-License-Identifier: Apache-2.0
//
// Client of a Tilewire server, or of any server of the Open Inference Protocol v2:
//
//   auto client = client::Client::Connect("127.0.0.1:8001");
//   auto image = client::Tensor::FromFloats("image", {1, 24, 20, 3}, pixels,
//                                           client::Layout::kNhwc);
//   auto result = (*client)->Infer("digits", {image});
//   std::vector<float> logits = *result->Find("logits")->Floats();
//
// Errors of the server come back as the absl::Status of the same code, with its message unchanged.
// The rest:
//   kUnavailable       no server answers at the address, which the message names
//   kDeadlineExceeded  no answer within the deadline
#ifndef CLIENT_CLIENT_H_
#define CLIENT_CLIENT_H_

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "protos/model_service.grpc.pb.h"
#include "protos/open_inference.grpc.pb.h"
#include "protos/tilewire.grpc.pb.h"

namespace tilewire::client {

// Where the channels stand in memory, and in the shape, of a tensor [N, C, spatial...].
enum class Layout : uint8_t { kNchw = 0, kNhwc = 1 };
absl::string_view LayoutName(Layout layout);  // "nchw"

// A tensor as it travels: row-major, little-endian, unpadded.
struct Tensor {
  std::string name;
  std::string datatype = "FP32";
  std::vector<int64_t> shape;  // in the order of `layout`
  Layout layout = Layout::kNchw;
  std::string bytes;

  static Tensor FromFloats(std::string name, std::vector<int64_t> shape,
                           absl::Span<const float> values, Layout layout = Layout::kNchw);
  // kFailedPrecondition  the datatype is not FP32, or the size is not a multiple of 4
  absl::StatusOr<std::vector<float>> Floats() const;
};

// Of a model's input or output. `shape` is [N, C, spatial...]; -1 is chosen by each request.
struct TensorMetadata {
  std::string name, datatype;
  std::vector<int64_t> shape;
};

// The tensor's shape with `batch` in the place of an open first dimension and `free_size` of
// others.
std::vector<int64_t> ClosedShape(const TensorMetadata& tensor, int64_t batch, int64_t free_size);

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

// A connection that is encrypted. Certificates and keys are PEM texts.
struct TlsOptions {
  std::string roots;             // that sign the server's certificate; empty: the system's
  std::string certificate, key;  // of this client, if the server asks for one; both or neither
  std::string server_name;       // that the server's certificate names; empty: the address's host
};

struct ConnectOptions {
  absl::Duration timeout = absl::Seconds(5);  // for the connection to stand; each metadata call too
  std::optional<TlsOptions> tls;              // nothing: in the clear
  // Leaves out what gRPC does besides calls: retries (transparent ones too), channelz, statistics.
  // A call then takes less time of this client, and a failure is seen as it is.
  bool bare = false;
};

// Thread-safe.
class Client {
 public:
  // `address` is HOST:PORT. Waits until the connection stands.
  static absl::StatusOr<std::unique_ptr<Client>> Connect(const std::string& address,
                                                         const ConnectOptions& options = {});
  // Over a channel that exists, such as one within the process.
  explicit Client(std::shared_ptr<grpc::Channel> channel, const ConnectOptions& options = {});

  absl::StatusOr<inference::ServerMetadataResponse> ServerMetadata();
  // kUnimplemented  the server does not know the extension RepositoryIndex
  absl::StatusOr<std::vector<ModelEntry>> ListModels();
  absl::StatusOr<ModelMetadata> Metadata(const std::string& model, const std::string& version = "");
  absl::StatusOr<bool> Ready(const std::string& model, const std::string& version = "");
  absl::StatusOr<Result> Infer(const std::string& model, const std::vector<Tensor>& inputs,
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

  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }

 private:
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<inference::GRPCInferenceService::Stub> inference_;
  const std::unique_ptr<v1::PrimitiveService::Stub> primitives_;
  const std::unique_ptr<v1::ModelService::Stub> models_;
  const absl::Duration timeout_;
};

}  // namespace tilewire::client

#endif  // CLIENT_CLIENT_H_
