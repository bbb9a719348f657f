// SPDX-License-Identifier: Apache-2.0
//
// A server on a fake engine, reached in-process: models "echo" (versions 1 and 2, with labels) and
// "bad" (does not load).
#ifndef TESTS_SERVICE_SERVED_FIXTURE_H_
#define TESTS_SERVICE_SERVED_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "grpcpp/grpcpp.h"
#include "protos/open_inference.grpc.pb.h"
#include "service/observe/steady_time.h"
#include "service/server.h"
#include "tests/support/echo_repository.h"
#include "tests/support/fake_engine.h"
#include "tests/support/loaded_repository.h"

namespace tilewire::service {

using tilewire::testing::WriteFile;

inline std::string Floats(int count, int first = 0) {
  std::vector<float> values(count);
  for (int i = 0; i < count; ++i) values[i] = first + i;
  return std::string(reinterpret_cast<const char*>(values.data()), count * sizeof(float));
}

// A batch of one that the fake model accepts: image 0, 1, ... and row 100, 101, ...
inline inference::ModelInferRequest GoodRequest() {
  inference::ModelInferRequest request;
  request.set_model_name("echo");
  request.set_id("7");
  auto* image = request.add_inputs();
  image->set_name("image");
  image->set_datatype("FP32");
  for (int dim : {1, 2, 3, 4}) image->add_shape(dim);
  auto* row = request.add_inputs();
  row->set_name("row");
  row->set_datatype("FP32");
  for (int dim : {1, 5}) row->add_shape(dim);
  request.add_raw_input_contents(Floats(24));
  request.add_raw_input_contents(Floats(5, 100));
  return request;
}

// The elements of BYTES, each of which has its length in four bytes ahead of it.
inline std::vector<std::string> ElementsOfBytes(const std::string& bytes) {
  std::vector<std::string> elements;
  for (size_t at = 0; at + 4 <= bytes.size();) {
    uint32_t size = 0;
    std::memcpy(&size, bytes.data() + at, 4);
    elements.push_back(bytes.substr(at + 4, size));
    at += 4 + size;
  }
  return elements;
}

class ServedFixture : public ::testing::Test {
 protected:
  void SetUp() override {
    directory_ = testing::WriteEchoRepository();
    WriteFile(directory_ / "echo/labels.txt", "zero\none\n");
    WriteFile(directory_ / "bad/1/model.onnx", "broken");
  }

  void Start(int max_queue = 16) {
    auto models = testing::OpenRepository(directory_.string(), &engine_, scan_);
    ASSERT_TRUE(models.ok()) << models.status();
    models_ = *std::move(models);
    options_.host = "127.0.0.1";
    options_.port = 0;
    options_.queue.max_waiting = options_.queue.max_waiting_per_model = max_queue;
    auto server = Server::Start(&engine_, models_.get(), options_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
    stub_ = inference::GRPCInferenceService::NewStub(server_->InProcessChannel());
  }

  // After Start(): an in-process channel compresses nothing, and ends as soon as the server drains.
  void ConnectOverTcp() {
    channel_ = grpc::CreateChannel(absl::StrCat("127.0.0.1:", server_->port()),
                                   grpc::InsecureChannelCredentials());
    stub_ = inference::GRPCInferenceService::NewStub(channel_);
  }

  // Whether it becomes true; a test that waits in vain takes a minute.
  static bool Happens(const std::function<bool()>& happened) {
    const absl::Time end = SteadyNow() + absl::Minutes(1);
    while (!happened() && SteadyNow() < end) absl::SleepFor(absl::Milliseconds(1));
    return happened();
  }

  void ExpectNothingIsHeld() {
    EXPECT_TRUE(Happens([this] { return server_->admission()->bytes() == 0; }))
        << server_->admission()->bytes();
  }

  using Stub = inference::GRPCInferenceService::Stub;

  // Calls a method of the stub; `status_` is its status.
  template <typename Request, typename Response>
  Response Ask(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
               const Request& request) {
    grpc::ClientContext context;
    Response response;
    status_ = (stub_.get()->*method)(&context, request, &response);
    return response;
  }

  grpc::Status Infer(const inference::ModelInferRequest& request,
                     inference::ModelInferResponse* response) {
    grpc::ClientContext context;
    return stub_->ModelInfer(&context, request, response);
  }

  std::filesystem::path directory_;
  testing::FakeEngine engine_;
  ServerOptions options_;  // tests may change these before Start()
  ScanOptions scan_ = {.latest = 0};
  std::unique_ptr<ModelRepository> models_;
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;  // of ConnectOverTcp()
  std::unique_ptr<Stub> stub_;
  grpc::Status status_;  // of the last Ask()
};

}  // namespace tilewire::service

#endif  // TESTS_SERVICE_SERVED_FIXTURE_H_
