// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
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

TEST_F(ModelServiceTest, TellsWhereTheTimeOfItsRequestsWent) {
  v1::LiveProfileRequest request;
  request.set_model("echo");
  v1::LiveProfileResponse live;
  grpc::ClientContext context;
  ASSERT_TRUE(plans_->LiveProfile(&context, request, &live).ok());
  EXPECT_EQ(live.model(), "echo");
  EXPECT_EQ(live.version(), "2");
  ASSERT_EQ(live.plans_size(), 1);
  const v1::LivePlan& plan = live.plans(0);
  ASSERT_EQ(plan.shapes_size(), 2);
  EXPECT_EQ(plan.shapes(0).name(), "image");
  EXPECT_THAT(plan.shapes(0).dims(), ::testing::ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(plan.runs(), 2);
  EXPECT_EQ(plan.summed_ns(), 6000);
  EXPECT_EQ(plan.steps(0).time_ns(), 6000);
  EXPECT_EQ(plan.steps(0).implementation(), "reorder/fake");
  EXPECT_FALSE(plan.later_stage());

  const std::pair<const char*, StatusCode> refused[] = {{"", StatusCode::INVALID_ARGUMENT},
                                                        {"nope", StatusCode::NOT_FOUND},
                                                        {"bad", StatusCode::FAILED_PRECONDITION}};
  for (const auto& [model, code] : refused) {
    request.set_model(model);
    grpc::ClientContext other;
    EXPECT_EQ(plans_->LiveProfile(&other, request, &live).error_code(), code) << model;
  }
}

class SlowRequestsTest : public ModelServiceTest {
 protected:
  // The server's timer looks at what has ended; the test waits for its looks.
  v1::SlowRequestsResponse AwaitSlow(const std::string& model, int requests) {
    v1::SlowRequestsRequest request;
    request.set_model(model);
    v1::SlowRequestsResponse slow;
    Happens([&] {
      grpc::ClientContext context;
      EXPECT_TRUE(plans_->SlowRequests(&context, request, &slow).ok());
      return slow.requests_size() >= requests;
    });
    EXPECT_EQ(slow.requests_size(), requests);
    return slow;
  }
};

// The request that was answered and whose id begins so.
const v1::SlowRequest& AnsweredRequest(const v1::SlowRequestsResponse& all, const char* id) {
  const auto found = absl::c_find_if(all.requests(), [id](const v1::SlowRequest& one) {
    return one.code() == "OK" && absl::StartsWith(one.id(), id);
  });
  EXPECT_NE(found, all.requests().end());
  return *found;
}

TEST_F(SlowRequestsTest, TellsWhichRequestsWereSlowAndWhy) {
  inference::ModelInferResponse answer;
  inference::ModelInferRequest request = GoodRequest();
  const absl::Time begin = SteadyNow();
  ASSERT_TRUE(Infer(request, &answer).ok());
  const absl::Duration longer = absl::Milliseconds(50) + 2 * (SteadyNow() - begin);
  request.set_id(absl::StrCat("seven ", std::string(60, 'x')));
  std::atomic<bool> slow{true};
  engine_.on_run = [&] {
    if (slow.exchange(false)) absl::SleepFor(longer);
  };
  ASSERT_TRUE(Infer(request, &answer).ok());
  request.mutable_inputs(0)->set_shape(1, 99);
  EXPECT_FALSE(Infer(request, &answer).ok());

  const v1::SlowRequestsResponse all = AwaitSlow("echo", 3);
  EXPECT_TRUE(absl::c_is_sorted(all.requests(), [](const auto& one, const auto& next) {
    return one.total_ns() > next.total_ns();
  })) << "the slowest first";
  const v1::SlowRequest& slowest = AnsweredRequest(all, "seven");
  EXPECT_EQ(slowest.id(), absl::StrCat("seven ", std::string(34, 'x'))) << "its beginning";
  EXPECT_EQ(slowest.model(), "echo");
  EXPECT_EQ(slowest.version(), "2");
  EXPECT_EQ(slowest.code(), "OK");
  EXPECT_EQ(slowest.rows(), 1);
  EXPECT_GE(slowest.run_ns(), 50'000'000);
  EXPECT_GT(slowest.decode_ns(), 0);
  EXPECT_GT(slowest.usual_ns(), 0);
  EXPECT_LT(slowest.usual_ns(), slowest.run_ns());
  EXPECT_EQ(slowest.total_ns(), slowest.decode_ns() + slowest.queue_ns() + slowest.plan_ns() +
                                    slowest.run_ns() + slowest.encode_ns() + slowest.write_ns());
  EXPECT_EQ(slowest.core_ns(), slowest.plan_ns() + slowest.run_ns() + slowest.encode_ns())
      << "there is one thread";
  EXPECT_LT(absl::AbsDuration(absl::FromUnixNanos(slowest.at_ns()) - absl::Now()),
            absl::Minutes(5));
  EXPECT_THAT(slowest.words(), ::testing::HasSubstr("running, "));
  int failed = 0;
  for (const v1::SlowRequest& one : all.requests()) {
    if (one.code() != "INVALID_ARGUMENT") continue;
    ++failed;
    EXPECT_EQ(one.run_ns(), 0) << "it never ran";
    EXPECT_EQ(one.rows(), 0);
  }
  EXPECT_EQ(failed, 1);
}

class ServerStatusTest : public ModelServiceTest {
 protected:
  // A request is counted before its client has the answer, but for its last step.
  v1::ServerStatusResponse AwaitAnswered(int64_t answered) {
    v1::ServerStatusResponse status;
    int64_t seen = 0, held = 0;  // a request that is answered may hold its place for a moment
    Happens([&] {
      grpc::ClientContext context;
      EXPECT_TRUE(plans_->ServerStatus(&context, {}, &status).ok());
      seen = held = 0;
      for (const v1::ModelStatus& model : status.models()) {
        held += model.waiting() + model.running();
        for (const v1::VersionStatus& version : model.versions()) seen += version.answered();
      }
      return seen >= answered && held == 0;
    });
    EXPECT_EQ(seen, answered);
    return status;
  }
};

TEST_F(ServerStatusTest, TellsHowTheServerIsAndWhatItServed) {
  inference::ModelInferResponse answer;
  inference::ModelInferRequest request = GoodRequest();
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(Infer(request, &answer).ok());
  request.set_model_version("1");
  ASSERT_TRUE(Infer(request, &answer).ok());
  request.mutable_inputs(0)->set_shape(1, 99);
  EXPECT_FALSE(Infer(request, &answer).ok());
  request.set_model_version("77");
  EXPECT_FALSE(Infer(request, &answer).ok());
  request.set_model_name("unknown");
  EXPECT_FALSE(Infer(request, &answer).ok());

  const v1::ServerStatusResponse status = AwaitAnswered(4);
  EXPECT_EQ(status.state(), "NOT READY") << "one model does not load";
  EXPECT_EQ(status.cores(), 1);
  EXPECT_GT(status.uptime_ns(), 0);
  EXPECT_LT(absl::AbsDuration(absl::FromUnixNanos(status.at_ns()) - absl::Now()), absl::Minutes(5));
  EXPECT_EQ(status.work_limit_bytes(), options_.max_work_bytes);
  EXPECT_EQ(status.unnamed_failed(), 2);
  ASSERT_EQ(status.models_size(), 2);
  const v1::VersionStatus& bad = status.models(0).versions(0);
  EXPECT_EQ(status.models(0).name(), "bad");
  EXPECT_EQ(bad.state(), "UNAVAILABLE");
  EXPECT_FALSE(bad.reason().empty());
  EXPECT_EQ(bad.answered() + bad.failed(), 0);
  const v1::ModelStatus& echo = status.models(1);
  EXPECT_EQ(echo.name(), "echo");
  EXPECT_EQ(echo.waiting() + echo.running(), 0);
  ASSERT_EQ(echo.versions_size(), 2);
  const v1::VersionStatus &first = echo.versions(0), &second = echo.versions(1);
  EXPECT_EQ(first.version(), "1");
  EXPECT_EQ(first.state(), "READY");
  EXPECT_EQ(first.answered(), 1);
  EXPECT_EQ(first.failed(), 1);
  EXPECT_EQ(first.refused(), 0);
  EXPECT_EQ(second.answered(), 3);
  EXPECT_EQ(second.rows(), 3);
  EXPECT_GT(second.request_ns(), second.queue_ns());
  EXPECT_GT(second.core_ns(), 0);
  EXPECT_LT(second.core_ns(), second.request_ns()) << "one thread";
  int64_t counted = 0, before = 0;
  for (const v1::DurationCount& duration : second.durations()) {
    EXPECT_GT(duration.up_to_ns(), before) << "ascending";
    EXPECT_GT(duration.count(), 0);
    before = duration.up_to_ns();
    counted += duration.count();
  }
  EXPECT_EQ(counted, 3);
}

TEST_F(ModelServiceTest, TellsTheStatusOfOneModel) {
  v1::ServerStatusRequest request;
  v1::ServerStatusResponse status;
  request.set_model("echo");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(plans_->ServerStatus(&context, request, &status).ok());
  }
  ASSERT_EQ(status.models_size(), 1);
  EXPECT_EQ(status.models(0).name(), "echo");
  request.set_model("nope");
  grpc::ClientContext context;
  EXPECT_EQ(plans_->ServerStatus(&context, request, &status).error_code(), StatusCode::NOT_FOUND);
}

TEST_F(ModelServiceTest, RefusesSlowRequestsByCode) {
  using Request = v1::SlowRequestsRequest;
  const struct {
    const char* why;
    StatusCode code;
    std::function<void(Request*)> change;
  } cases[] = {
      {"all models", StatusCode::OK, [](Request*) {}},
      {"a model without requests", StatusCode::OK, [](Request* r) { r->set_model("echo"); }},
      {"unknown model", StatusCode::NOT_FOUND, [](Request* r) { r->set_model("nope"); }},
      {"too many", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->set_most(1001); }},
      {"negative", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->set_most(-1); }},
      {"before 1970", StatusCode::INVALID_ARGUMENT, [](Request* r) { r->set_since_ms(-1); }},
      {"beyond what a clock tells", StatusCode::INVALID_ARGUMENT,
       [](Request* r) { r->set_since_ms(std::numeric_limits<int64_t>::max()); }},
  };
  for (const auto& c : cases) {
    Request request;
    c.change(&request);
    grpc::ClientContext context;
    v1::SlowRequestsResponse slow;
    EXPECT_EQ(plans_->SlowRequests(&context, request, &slow).error_code(), c.code) << c.why;
  }
}

TEST_F(ModelServiceTest, ADrainingServerStillExplains) {
  server_->StartDrain();
  EXPECT_TRUE(Explain(request_).ok());
}

}  // namespace
}  // namespace tilewire::service
