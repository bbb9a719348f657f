// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <chrono>
#include <functional>

#include "protos/model_service.grpc.pb.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using grpc::StatusCode;

class ModelServiceTest : public ServedFixture {
 protected:
  void SetUp() override {
    ServedFixture::SetUp();
    Start();
    plans_ = v1::ModelService::NewStub(server_->InProcessChannel());
    request_.set_model("echo");
  }

  grpc::Status Explain(const v1::ExplainRequest& request) {
    grpc::ClientContext context;
    return plans_->Explain(&context, request, &response_);
  }

  std::unique_ptr<v1::ModelService::Stub> plans_;
  v1::ExplainRequest request_;
  v1::ExplainResponse response_;
};

TEST_F(ModelServiceTest, TellsThePlanAndTimesOnlyOnRequest) {
  request_.set_batch(3);
  ASSERT_TRUE(Explain(request_).ok());
  EXPECT_EQ(response_.version(), "2");
  ASSERT_EQ(response_.steps_size(), 1);
  EXPECT_EQ(response_.steps(0).implementation(), "reorder/fake");
  EXPECT_EQ(response_.steps(0).tensors(0).size_bytes(), 96);
  EXPECT_EQ(response_.steps(0).remark(), "[3,2,3,4]") << "the batch reaches the engine";
  EXPECT_EQ(response_.steps(0).time_ns(), 0);
  EXPECT_EQ(response_.peak_gflops(), 0);
  EXPECT_EQ(response_.precision(), "exact");

  request_.set_runs(2);
  ASSERT_TRUE(Explain(request_).ok());
  EXPECT_EQ(response_.steps(0).time_ns(), 2000);
  EXPECT_DOUBLE_EQ(response_.steps(0).share_of_peak(), 0.25) << "4000 in 2 us of 8 GFLOP/s";
  EXPECT_EQ(response_.run_ns(), 2000);
}

TEST_F(ModelServiceTest, ANamedShapeStandsForTheBatch) {
  auto* shape = request_.add_shapes();
  shape->set_name("image");
  for (int dim : {5, 2, 3, 4}) shape->add_dims(dim);
  ASSERT_TRUE(Explain(request_).ok());
  EXPECT_EQ(response_.steps(0).remark(), "[5,2,3,4]");
}

TEST_F(ModelServiceTest, RefusesByCode) {
  using Request = v1::ExplainRequest;
  const struct {
    const char* why;
    StatusCode code;
    std::function<void(Request*)> spoil;
  } cases[] = {
      {"no name", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->clear_model(); }},
      {"unknown model", StatusCode::NOT_FOUND, [](Request* r) { r->set_model("nope"); }},
      {"unknown version", StatusCode::NOT_FOUND, [](Request* r) { r->set_version("9"); }},
      {"version that is none", StatusCode::INVALID_ARGUMENT,
       [](Request* r) { r->set_version("latest"); }},
      {"did not load", StatusCode::FAILED_PRECONDITION, [](Request* r) { r->set_model("bad"); }},
      {"too many runs", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->set_runs(1001); }},
      {"negative runs", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->set_runs(-1); }},
      {"unknown input", StatusCode::INVALID_ARGUMENT,
       [](Request* r) { r->add_shapes()->set_name("picture"); }},
      {"an input twice", StatusCode::INVALID_ARGUMENT,
       [](Request* r) {
         r->add_shapes()->set_name("row");
         r->add_shapes()->set_name("row");
       }},
      {"more shapes than a request may have", StatusCode::INVALID_ARGUMENT,
       [](Request* r) {
         for (int i = 0; i < 200'000; ++i) r->add_shapes();
       }},
  };
  for (const auto& c : cases) {
    v1::ExplainRequest request = request_;
    c.spoil(&request);
    EXPECT_EQ(Explain(request).error_code(), c.code) << c.why;
  }
}

TEST_F(ModelServiceTest, ADeadlineThatPassedEndsTheRuns) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() - std::chrono::seconds(1));
  EXPECT_EQ(plans_->Explain(&context, request_, &response_).error_code(),
            StatusCode::DEADLINE_EXCEEDED);
}

TEST_F(ModelServiceTest, TheServersOwnLimitIsNotTakenForTheClientsDeadline) {
  server_ = nullptr;
  options_.longest_explanation = absl::Milliseconds(20);
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(30)); };
  Start();
  plans_ = v1::ModelService::NewStub(server_->InProcessChannel());
  const grpc::Status status = Explain(request_);
  EXPECT_EQ(status.error_code(), StatusCode::DEADLINE_EXCEEDED);
  EXPECT_THAT(status.error_message(), ::testing::HasSubstr("not the client's deadline"));
}

TEST_F(ModelServiceTest, ADrainingServerStillExplains) {
  server_->StartDrain();
  EXPECT_TRUE(Explain(request_).ok());
}

}  // namespace
}  // namespace tilewire::service
