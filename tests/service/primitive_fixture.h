// SPDX-License-Identifier: Apache-2.0
//
// A server on the real engine and without models, and the words to speak to its PrimitiveService.
#ifndef TESTS_SERVICE_PRIMITIVE_FIXTURE_H_
#define TESTS_SERVICE_PRIMITIVE_FIXTURE_H_

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/text_format.h"
#include "protos/tilewire.grpc.pb.h"
#include "service/server.h"

namespace tilewire::service {

// Text of a MemoryDesc: Md("1,3,2,2", "nchw").
inline std::string Md(absl::string_view dims, absl::string_view tag) {
  return absl::StrCat("{ dims: [", dims, "] type: DATA_TYPE_F32 tag: '", tag, "' }");
}

// Weights of a 2D convolution that are all the same number in memory, which only the reference
// takes.
inline std::string OneWeight(absl::string_view dims) {
  return absl::StrCat("{ dims: [", dims,
                      "] type: DATA_TYPE_F32 strides { values: [0, 0, 0, 0] } }");
}

template <typename Message>
Message FromText(const std::string& text) {
  Message message;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &message)) << text;
  return message;
}

struct GivenTensor {
  int argument;
  std::string desc;  // text
  std::vector<float> values;
};

template <typename T>
v1::Tensor ToMessage(int argument, const std::string& desc, const std::vector<T>& values) {
  v1::Tensor tensor;
  tensor.set_argument(argument);
  const std::string fields = desc.substr(1, desc.size() - 2);  // without the braces
  *tensor.mutable_desc() = FromText<v1::MemoryDesc>(fields);
  tensor.set_content(values.data(), values.size() * sizeof(T));
  return tensor;
}
inline v1::Tensor ToMessage(const GivenTensor& given) {
  return ToMessage(given.argument, given.desc, given.values);
}

inline std::vector<float> ValuesOf(const v1::Tensor& tensor) {
  std::vector<float> values(tensor.content().size() / sizeof(float));
  std::memcpy(values.data(), tensor.content().data(), values.size() * sizeof(float));
  return values;
}

class PrimitiveFixture : public ::testing::Test {
 protected:
  void Start(const EngineOptions& engine_options = {}) {
    engine_ = Engine::Create(engine_options).value();
    options_.host = "127.0.0.1";
    options_.port = 0;
    server_ = Server::Start(engine_.get(), &models_, options_).value();
    stub_ = v1::PrimitiveService::NewStub(server_->InProcessChannel());
  }

  grpc::Status Create(const std::string& primitive, v1::CreateResponse* response) {
    grpc::ClientContext context;
    v1::CreateRequest request;
    *request.mutable_primitive() = FromText<v1::PrimitiveDesc>(primitive);
    return stub_->Create(&context, request, response);
  }

  grpc::Status Execute(const v1::ExecuteRequest& request, v1::ExecuteResponse* response) {
    grpc::ClientContext context;
    return stub_->Execute(&context, request, response);
  }

  v1::CacheStatisticsResponse Statistics() {
    grpc::ClientContext context;
    v1::CacheStatisticsResponse response;
    EXPECT_TRUE(stub_->CacheStatistics(&context, {}, &response).ok());
    return response;
  }

  ModelRepository models_;
  ServerOptions options_;  // tests may change them before Start()
  std::unique_ptr<Engine> engine_;
  std::unique_ptr<Server> server_;
  std::unique_ptr<v1::PrimitiveService::Stub> stub_;
};

}  // namespace tilewire::service

#endif  // TESTS_SERVICE_PRIMITIVE_FIXTURE_H_
