// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/synchronization/barrier.h"
#include "client/tables/plan_text.h"
#include "client/tables/slow_text.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

class ClientTest : public ::testing::Test {
 protected:
  FakeService service_;
  FakeServer server_{&service_};
  std::unique_ptr<Client> client_ = server_.NewClient();
};

TEST_F(ClientTest, MetadataHasShapesAndLabels) {
  const auto metadata = client_->Metadata("echo");
  ASSERT_THAT(metadata, IsOk());
  EXPECT_THAT(metadata->inputs[0].shape, ElementsAre(-1, 3, 4, 5));
  EXPECT_THAT(metadata->versions, ElementsAre("1"));
  EXPECT_THAT(metadata->Labels(), ElementsAre("zero", "one", "two"));
}

TEST_F(ClientTest, AllOutputsAsksForALayoutOnlyWhereThereIsOne) {
  const auto metadata = client_->Metadata("echo");
  ASSERT_THAT(metadata, IsOk());
  const auto outputs = AllOutputs(*metadata, Layout::kNhwc);
  ASSERT_EQ(outputs.size(), 2);
  EXPECT_EQ(outputs[0].layout, Layout::kNchw);
  EXPECT_EQ(outputs[1].layout, Layout::kNhwc);
}

TEST_F(ClientTest, InferSendsRawBytesAndLayoutAndReadsThemBack) {
  const std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Tensor input = Tensor::FromFloats("x", {1, 2, 1, 3}, values, Layout::kNhwc);
  service_.edit = [](int, const inference::ModelInferRequest& request, auto*) {
    EXPECT_EQ(request.inputs(0).parameters().at("layout").string_param(), "nhwc");
    EXPECT_FALSE(request.inputs(0).has_contents());
    return grpc::Status::OK;
  };
  const auto result = client_->Infer(
      "echo", {input}, {.outputs = {{"map", Layout::kNhwc}, {"scores"}}, .id = "seven"});
  ASSERT_THAT(result, IsOk());
  EXPECT_EQ(result->id, "seven");
  EXPECT_EQ(result->Find("map")->layout, Layout::kNhwc);
  EXPECT_EQ(result->Find("scores")->layout, Layout::kNchw);
  EXPECT_EQ(*result->Find("map")->Floats(), values);
  EXPECT_EQ(result->Find("nothing"), nullptr);
}

TEST_F(ClientTest, ServersErrorsKeepCodeAndMessage) {
  EXPECT_THAT(client_->Metadata("other"),
              StatusIs(absl::StatusCode::kNotFound, "no model 'other'"));
  EXPECT_THAT(client_->ListModels(), StatusIs(absl::StatusCode::kUnimplemented));
}

TEST_F(ClientTest, AnswerWithoutRawContentsIsAnErrorNotACrash) {
  service_.edit = [](int, const auto&, inference::ModelInferResponse* response) {
    response->clear_raw_output_contents();
    return grpc::Status::OK;
  };
  const auto result =
      client_->Infer("echo", {Tensor::FromFloats("x", {1}, {1.0f})}, {.outputs = {{"scores"}}});
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kInternal, "raw contents"));
}

TEST_F(ClientTest, DeadlineEndsACall) {
  const auto result = client_->Infer("echo", {Tensor::FromFloats("x", {1}, {1.0f})},
                                     {.deadline = -absl::Seconds(1)});
  EXPECT_THAT(result, StatusIs(absl::StatusCode::kDeadlineExceeded));
}

// Each call is answered only when all have arrived.
TEST_F(ClientTest, AsynchronousCallsRunSideBySide) {
  constexpr int kCalls = 4;
  absl::Barrier all(kCalls);
  service_.edit = [&all](int, const auto&, auto*) {
    all.Block();
    return grpc::Status::OK;
  };
  std::vector<std::future<absl::StatusOr<Result>>> futures;
  for (int i = 0; i < kCalls; ++i) {
    futures.push_back(client_->InferAsync("echo", {Tensor::FromFloats("x", {1}, {i + 0.5f})},
                                          {.outputs = {{"scores"}}}));
  }
  client_ = nullptr;
  for (int i = 0; i < kCalls; ++i) {
    const absl::StatusOr<Result> result = futures[i].get();
    ASSERT_THAT(result, IsOk());
    EXPECT_THAT(*result->Find("scores")->View<float>(), ElementsAre(i + 0.5f));
  }
}

TEST_F(ClientTest, AnAsynchronousCallHasADeadlineAndErrorsToo) {
  const Tensor x = Tensor::FromFloats("x", {1}, {1.0f});
  EXPECT_THAT(client_->InferAsync("echo", {x}, {.deadline = -absl::Seconds(1)}).get(),
              StatusIs(absl::StatusCode::kDeadlineExceeded));
  service_.edit = [](int, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INTERNAL, "so");
  };
  EXPECT_THAT(client_->InferAsync("echo", {x}).get(), StatusIs(absl::StatusCode::kInternal, "so"));
}

TEST_F(ClientTest, KnownMetadataIsAskedForOnceUntilTheModelRefuses) {
  for (int i = 0; i < 3; ++i) {
    const auto metadata = client_->KnownMetadata("echo");
    ASSERT_THAT(metadata, IsOk());
    EXPECT_EQ((*metadata)->inputs[0].name, "x");
  }
  EXPECT_EQ(service_.asked_for_metadata, 1);
  service_.edit = [](int, const auto&, auto*) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "another shape");
  };
  const Tensor x = Tensor::FromFloats("x", {1}, {1.0f});
  EXPECT_THAT(client_->Infer("echo", {x}), StatusIs(absl::StatusCode::kInvalidArgument));
  EXPECT_THAT(client_->KnownMetadata("echo"), IsOk());
  EXPECT_EQ(service_.asked_for_metadata, 2);
  EXPECT_THAT(client_->KnownMetadata("other"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(client_->KnownMetadata("other"), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_EQ(service_.asked_for_metadata, 4) << "errors are not kept";
}

TEST_F(ClientTest, HealthFollowsTheServer) {
  EXPECT_THAT(client_->Health("", absl::Seconds(60)), IsOk());
  server_.server()->GetHealthCheckService()->SetServingStatus("model", false);
  EXPECT_THAT(client_->Health("model", absl::Seconds(60)),
              StatusIs(absl::StatusCode::kFailedPrecondition, "'model' is not serving"));
  EXPECT_THAT(client_->Health(std::string(150, 'n'), absl::Seconds(60)),
              StatusIs(absl::StatusCode::kNotFound));
}

TEST_F(ClientTest, APlanIsATableWithTimesOnlyWhereItWasRun) {
  v1::ExplainRequest request;
  EXPECT_THAT(client_->Explain(request), StatusIs(absl::StatusCode::kNotFound));
  request.set_model("echo");
  const auto plan = client_->Explain(request);
  ASSERT_THAT(plan, IsOk());
  EXPECT_EQ(PlanText(*plan, {.wide = true}),
            "echo version 1: 3 steps, 0.00 GFLOP in products of matrices\n"
            "weights 2.50 MB in the file, activations 0 B, scratchpad 0 B\n"
            "    bytes  implementation, layouts + fused, node\n"
            "      0 B  -  input x\n"
            "   300 kB  convolution/reference src f32:1x3x4x5:nchw, weights f32:4x3x1x1:oihw -> "
            "f32:1x4x4x5:nchw + relu:0  conv (reference, because)\n"
            "      0 B  -  output scores\n");
  request.set_runs(7);
  const auto timed = client_->Explain(request);
  ASSERT_THAT(timed, IsOk());
  const std::string text = PlanText(*timed, {.costliest = 1});
  EXPECT_THAT(text,
              HasSubstr("median of 7 runs 0.004 ms: 2.0 of 16.0 GFLOP/s (2 threads), 12.5 %"));
  EXPECT_THAT(text, HasSubstr("  0.002 ms  50.0 %  25.0 %  convolution/reference"));
  EXPECT_THAT(text, Not(HasSubstr("input x")));
}

TEST(PlanTextTest, FitsEightyColumnsAndKeepsTheEndsOfNames) {
  v1::ExplainResponse plan;
  plan.set_runs(1);
  for (const int length : {1, 28, 60, 100}) {
    v1::PlanStep* step = plan.add_steps();
    step->set_implementation(absl::StrCat("convolution/", std::string(length, 'i')));
    step->set_node(absl::StrCat("/model/", std::string(90, 'n'), "/Conv"));
    step->add_refusals()->set_reason("is for others");
  }
  const std::string text = PlanText(plan);
  for (absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 80) << line;
  EXPECT_THAT(text, HasSubstr("nn/Conv\n"));
  EXPECT_THAT(text, HasSubstr("convolution/iiii"));
  EXPECT_THAT(text, Not(HasSubstr("is for others")));
  EXPECT_THAT(PlanText(plan, {.wide = true}), HasSubstr("is for others"));
  EXPECT_THAT(MessageJson(plan), HasSubstr("\"reason\": \"is for others\""));
}

TEST(PlanTextTest, HasAColumnForPrecisionsWhereTheyDiffer) {
  v1::ExplainResponse plan;
  plan.set_precision("tuned");
  for (const char* precision : {"", "exact", "exact"}) {
    v1::PlanStep* step = plan.add_steps();
    step->set_implementation("convolution/reference");
    step->set_node(std::string(90, 'n'));
    step->set_precision(precision);
  }
  EXPECT_THAT(PlanText(plan), HasSubstr("    bytes  implementation, node\n"));
  plan.mutable_steps(2)->set_precision("int8");
  plan.set_tuning("tilewire.tuning, to l2<=0.03: 1 layers int8\x1b");
  const std::string text = PlanText(plan);
  EXPECT_THAT(text, HasSubstr("\ntuned by tilewire.tuning, to l2<=0.03: 1 layers int8?\n"));
  EXPECT_THAT(text, HasSubstr("    bytes prec.  implementation, node\n"
                              "      0 B     -  convolution/reference  .."));
  EXPECT_THAT(text, HasSubstr("      0 B exact  convolution/reference  .."));
  EXPECT_THAT(text, HasSubstr("      0 B  int8  convolution/reference  .."));
  for (absl::string_view line : absl::StrSplit(text, '\n')) EXPECT_LE(line.size(), 80) << line;
}

TEST(LiveProfileTextTest, ShowsTheMeanOfEachPlanThatRanTheOneThatTookMostFirst) {
  v1::LiveProfileResponse profile;
  profile.set_model("cats");
  profile.set_version("7");
  profile.set_precision("exact");
  const struct {
    int64_t batch, runs, ns;
  } plans[] = {{1, 10, 20'000'000}, {2, 0, 0}, {8, 4, 40'000'000}};
  for (const auto& one : plans) {
    v1::LivePlan* plan = profile.add_plans();
    auto* shape = plan->add_shapes();
    shape->set_name("x");
    for (int64_t dim : {one.batch, int64_t{3}}) shape->add_dims(dim);
    plan->set_runs(one.runs);
    plan->set_summed_ns(one.ns);
    for (const char* node : {"first", "second"}) {
      v1::PlanStep* step = plan->add_steps();
      step->set_node(node);
      step->set_implementation("convolution/reference");
      step->set_time_ns(node[0] == 'f' ? one.ns / 4 : 3 * one.ns / 4);
    }
  }
  EXPECT_EQ(LiveProfileText(profile),
            "cats version 7, precision exact: 2 plans with runs\n"
            "\nx=8x3: 4 runs, mean 10.000 ms\n"
            "      time  of run of peak  implementation, node\n"
            "  2.500 ms  25.0 %       -  convolution/reference  first\n"
            "  7.500 ms  75.0 %       -  convolution/reference  second\n"
            "\nx=1x3: 10 runs, mean 2.000 ms\n"
            "      time  of run of peak  implementation, node\n"
            "  0.500 ms  25.0 %       -  convolution/reference  first\n"
            "  1.500 ms  75.0 %       -  convolution/reference  second\n");
  EXPECT_THAT(LiveProfileText(profile, {.costliest = 1}), Not(HasSubstr("first")));
}

TEST(SlowTextTest, IsALineAndAStoryForEachRequestWithoutControlCharacters) {
  v1::SlowRequestsResponse slow;
  EXPECT_EQ(SlowText(slow), "no requests are known of that time\n");
  v1::SlowRequest* request = slow.add_requests();
  request->set_at_ns(3'661'000'000'000);
  request->set_total_ns(412'000'000);
  request->set_queue_ns(371'000'000);
  request->set_plan_ns(1'000'000);
  request->set_run_ns(36'000'000);
  request->set_encode_ns(1'000'000);
  request->set_usual_ns(12'300'000);
  request->set_model("ca\x1bts");
  request->set_version("7");
  request->set_id("a\n81f");
  request->set_code("DEADLINE_EXCEEDED");
  request->set_words(
      "371 ms waiting while these ran: 9 requests of vgg (1200 ms), 1 request of cats (12 ms)");
  slow.set_missed(2);
  EXPECT_EQ(SlowText(slow),
            "     UTC        ms   waiting   running   usually  model, version, id\n"
            "01:01:01       412       371     38.00     12.30  ca?ts 7 id a?81f DEADLINE_EXCEEDED\n"
            "         371 ms waiting while these ran: 9 requests of vgg (1200 ms), 1 request\n"
            "         of cats (12 ms)\n"
            "2 more requests came too fast to be looked at\n");
}

TEST(SlowTextTest, SaysWhenOthersTookTheCpu) {
  v1::SlowRequestsResponse slow;
  slow.set_cpu_wait_share(0.09);
  EXPECT_EQ(SlowText(slow), "no requests are known of that time\n") << "as any machine shows";
  slow.set_cpu_wait_share(0.384);
  slow.add_requests()->set_words("why");
  EXPECT_THAT(SlowText(slow),
              EndsWith("         why\n"
                       "compute threads that could run waited 38 % of the last minute for a CPU:\n"
                       "other processes take it, or --threads is more than there are cores\n"));
}

TEST(SlowTextTest, WrapsByCells) {
  v1::SlowRequestsResponse slow;
  std::string name;
  for (int i = 0; i < 16; ++i) name += "\u732B";
  slow.add_requests()->set_words(absl::StrCat(name, " ", name, " ", name));
  EXPECT_THAT(SlowText(slow),
              HasSubstr(absl::StrCat("\n         ", name, " ", name, "\n         ", name, "\n")));
}

TEST(Connect, SaysWhereNobodyAnswers) {
  EXPECT_THAT(Client::Connect("127.0.0.1:1", {.timeout = absl::Milliseconds(50)}),
              StatusIs(absl::StatusCode::kUnavailable, "127.0.0.1:1"));
}

TEST(TensorFloats, RefusesOtherTypesAndBrokenSizes) {
  Tensor tensor{"t", "INT32", {1}, Layout::kNchw, "1234"};
  EXPECT_THAT(tensor.Floats(), StatusIs(absl::StatusCode::kFailedPrecondition));
  tensor.datatype = "FP32";
  EXPECT_THAT(tensor.Floats(), IsOk());
  tensor.bytes = "123";
  EXPECT_THAT(tensor.Floats(), StatusIs(absl::StatusCode::kFailedPrecondition));
}

TEST(TensorView, HasTheTypeThatWasGiven) {
  const std::vector<int64_t> values = {-1, int64_t{1} << 40};
  const Tensor tensor = Tensor::From<int64_t>("t", {2}, values);
  EXPECT_EQ(tensor.datatype, "INT64");
  EXPECT_THAT(*tensor.View<int64_t>(), ElementsAre(-1, int64_t{1} << 40));
  EXPECT_THAT(tensor.View<uint64_t>(),
              StatusIs(absl::StatusCode::kFailedPrecondition, "INT64, not UINT64"));
  EXPECT_EQ(DatatypeName<bool>(), "BOOL");
  EXPECT_EQ(DatatypeName<uint8_t>(), "UINT8");
  EXPECT_EQ(DatatypeName<int16_t>(), "INT16");
  EXPECT_EQ(DatatypeName<int32_t>(), "INT32");
  EXPECT_EQ(DatatypeName<double>(), "FP64");
  EXPECT_TRUE(Tensor::From<double>("none", {0}, {}).View<double>()->empty());
}

}  // namespace
}  // namespace tilewire::client
