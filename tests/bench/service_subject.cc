// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/service_subject.h"

#include <cstdlib>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "grpcpp/impl/codegen/client_unary_call.h"
#include "protos/open_inference.pb.h"
#include "tests/support/onnx_builder.h"

namespace tilewire::bench {
namespace {

constexpr char kSmall[] = "average";
constexpr char kLarge[] = "convolutions";

std::string AverageModel() {
  testing::OnnxBuilder model;
  model.Input("image", {-1, 3, 224, 224})
      .Node("GlobalAveragePool", {"image"}, {"mean"})
      .Output("mean");
  return model.Serialize();
}

std::string ConvolutionModel() {
  testing::OnnxBuilder model;
  model.Input("image", {-1, 3, 224, 224}).Floats("w0", {64, 3, 7, 7});
  model.Node("Conv", {"image", "w0"}, {"c0"},
             {testing::Ints("strides", {4, 4}), testing::Ints("pads", {3, 3, 3, 3})});
  for (int i = 1; i <= 4; ++i) {
    const std::string weights = absl::StrCat("w", i);
    model.Floats(weights, {64, 64, 3, 3})
        .Node("Conv", {absl::StrCat("c", i - 1), weights}, {absl::StrCat("r", i)},
              {testing::Ints("pads", {1, 1, 1, 1})})
        .Node("Relu", {absl::StrCat("r", i)}, {absl::StrCat("c", i)});
  }
  model.Node("GlobalAveragePool", {"c4"}, {"mean"}).Output("mean");
  return model.Serialize();
}

}  // namespace

Repository::Repository(const std::string& model) : small_(kSmall), large_(kLarge) {
  char name[] = "/tmp/service_bench_XXXXXX";
  path_ = mkdtemp(name);
  if (model.empty()) {
    testing::WriteFile(FileOf(kSmall), AverageModel());
    testing::WriteFile(FileOf(kLarge), ConvolutionModel());
    return;
  }
  small_ = large_ = "model";
  std::filesystem::copy_file(model, FileOf(small_));
}

Repository::~Repository() { std::filesystem::remove_all(path_); }

std::string Repository::FileOf(const std::string& model) const {
  const std::filesystem::path folder = path_ / model / "1";
  std::filesystem::create_directories(folder);
  return (folder / "model.onnx").string();
}

absl::Status Subject::Run() const {
  const InputTensor input{dims, Layout::kNchw, {image}};
  return model->Run({&input, 1}, {}, {}).status();
}

absl::StatusOr<Subject> LoadSubject(Engine* engine, const Repository& repository,
                                    const std::string& name, int64_t batch) {
  Subject subject;
  ABSL_ASSIGN_OR_RETURN(subject.model, engine->LoadModel(repository.FileOf(name)));
  const ModelSignature& signature = subject.model->signature();
  if (signature.inputs.size() != 1) return absl::UnimplementedError("a model of several inputs");
  subject.dims = signature.inputs[0].dims;
  for (int64_t& dim : subject.dims) dim = dim > 0 ? dim : batch;
  std::vector<float> values(*ElementCount(subject.dims));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1009) / 504.5f - 1;
  subject.image.assign(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
  inference::ModelInferRequest request;
  request.set_model_name(name);
  inference::ModelInferRequest::InferInputTensor* input = request.add_inputs();
  input->set_name(signature.inputs[0].name);
  input->set_datatype("FP32");
  for (int64_t dim : subject.dims) input->add_shape(dim);
  request.add_raw_input_contents(subject.image);
  const grpc::Slice bytes(request.SerializeAsString());
  subject.request = grpc::ByteBuffer(&bytes, 1);
  return subject;
}

Caller::Caller(int port) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  channel_ = grpc::CreateCustomChannel(absl::StrCat("127.0.0.1:", port),
                                       grpc::InsecureChannelCredentials(), arguments);
}

absl::StatusOr<int64_t> Caller::Call(const grpc::ByteBuffer& request) {
  const grpc::internal::RpcMethod method("/inference.GRPCInferenceService/ModelInfer",
                                         grpc::internal::RpcMethod::NORMAL_RPC, channel_);
  grpc::ClientContext context;
  grpc::ByteBuffer answer;
  const grpc::Status status = grpc::internal::BlockingUnaryCall<grpc::ByteBuffer, grpc::ByteBuffer>(
      channel_.get(), method, &context, request, &answer);
  if (status.ok()) return static_cast<int64_t>(answer.Length());
  return absl::Status(static_cast<absl::StatusCode>(status.error_code()), status.error_message());
}

}  // namespace tilewire::bench
