// SPDX-License-Identifier: Apache-2.0
//
// A server within the process that answers as a test tells it to.
#ifndef TESTS_CLIENT_FAKE_SERVER_H_
#define TESTS_CLIENT_FAKE_SERVER_H_

#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server_builder.h>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include "client/client.h"

namespace tilewire::client {

// One model `echo`: input x [N,3,4,5], outputs scores [N,4] and map [N,3,4,5]; it answers with what
// it got.
class FakeService final : public inference::GRPCInferenceService::Service {
 public:
  // Applied to each answer; `number` counts the requests from 0.
  std::function<grpc::Status(int number, const inference::ModelInferRequest& request,
                             inference::ModelInferResponse* response)>
      edit;
  std::string refusal_pushback_ms;  // grpc-retry-pushback-ms of refusals; empty: none
  std::atomic<int> asked_for_metadata = 0;

  grpc::Status ModelMetadata(grpc::ServerContext*, const inference::ModelMetadataRequest* request,
                             inference::ModelMetadataResponse* response) override {
    ++asked_for_metadata;
    if (request->name() != "echo") {
      return {grpc::StatusCode::NOT_FOUND, "no model '" + request->name() + "'"};
    }
    response->set_name("echo");
    response->add_versions("1");
    Describe("x", {-1, 3, 4, 5}, response->add_inputs());
    Describe("scores", {-1, 4}, response->add_outputs());
    Describe("map", {-1, 3, 4, 5}, response->add_outputs());
    (*response->mutable_properties())["labels"] = "zero\none\ntwo\n";
    return grpc::Status::OK;
  }

  grpc::Status ModelInfer(grpc::ServerContext* context, const inference::ModelInferRequest* request,
                          inference::ModelInferResponse* response) override {
    const int number = count_++;
    response->set_id(request->id());
    response->set_model_version("1");
    for (const auto& wanted : request->outputs()) {
      auto* output = response->add_outputs();
      output->set_name(wanted.name());
      output->set_datatype("FP32");
      *output->mutable_shape() = request->inputs(0).shape();
      *output->mutable_parameters() = wanted.parameters();
      response->add_raw_output_contents(request->raw_input_contents(0));
    }
    const grpc::Status status = edit ? edit(number, *request, response) : grpc::Status::OK;
    if (!status.ok() && !refusal_pushback_ms.empty())
      context->AddTrailingMetadata("grpc-retry-pushback-ms", refusal_pushback_ms);
    return status;
  }

 private:
  template <typename Wire>
  static void Describe(const char* name, std::initializer_list<int64_t> shape, Wire* tensor) {
    tensor->set_name(name);
    tensor->set_datatype("FP32");
    for (const int64_t size : shape) tensor->add_shape(size);
  }

  std::atomic<int> count_ = 0;
};

// The plan of `echo`: an input, a convolution of 2 us in a run of 4 us, an output.
class FakePlans final : public v1::ModelService::Service {
 public:
  grpc::Status Explain(grpc::ServerContext*, const v1::ExplainRequest* request,
                       v1::ExplainResponse* response) override {
    if (request->model() != "echo") {
      return {grpc::StatusCode::NOT_FOUND, "no model '" + request->model() + "'"};
    }
    response->set_model("echo");
    response->set_version("1");
    response->set_weights_bytes(2'500'000);
    response->add_steps()->set_node("input x");
    v1::PlanStep* step = response->add_steps();
    step->set_node("conv");
    step->set_implementation("convolution/reference");
    step->set_fused("relu:0");
    step->set_remark("reference, because");
    step->set_operations(8000);
    const std::pair<const char*, const char*> tensors[] = {
        {"src", "f32:1x3x4x5:nchw"}, {"weights", "f32:4x3x1x1:oihw"}, {"dst", "f32:1x4x4x5:nchw"}};
    for (const auto& [argument, layout] : tensors) {
      v1::PlanTensor* tensor = step->add_tensors();
      tensor->set_argument(argument);
      tensor->set_layout(layout);
      tensor->set_size_bytes(100'000);
    }
    response->add_steps()->set_node("output scores");
    response->set_runs(request->runs());
    if (request->runs() == 0) return grpc::Status::OK;
    response->set_run_ns(4000);
    response->set_threads(2);
    response->set_peak_gflops(16);
    step->set_time_ns(2000);
    step->set_share_of_peak(0.25);
    return grpc::Status::OK;
  }
};

class FakeServer {
 public:
  explicit FakeServer(FakeService* service) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    builder.RegisterService(service);
    builder.RegisterService(&plans_);
    server_ = builder.BuildAndStart();
  }

  std::unique_ptr<Client> NewClient() {
    return std::make_unique<Client>(server_->InProcessChannel(grpc::ChannelArguments()));
  }
  grpc::Server* server() { return server_.get(); }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }

 private:
  FakePlans plans_;
  int port_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace tilewire::client

#endif  // TESTS_CLIENT_FAKE_SERVER_H_
