// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <functional>

#include "service/models/model_load.h"
#include "service/models/repository_scan.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using Request = inference::ModelInferRequest;
using Response = inference::ModelInferResponse;

class InferenceServiceTest : public ServedFixture {};

TEST_F(InferenceServiceTest, TellsWhatItServes) {
  Start();
  grpc::ClientContext live_context, ready_context, metadata_context;
  inference::ServerLiveResponse live;
  EXPECT_TRUE(stub_->ServerLive(&live_context, {}, &live).ok());
  EXPECT_TRUE(live.live());
  inference::ServerReadyResponse ready;
  EXPECT_TRUE(stub_->ServerReady(&ready_context, {}, &ready).ok());
  EXPECT_FALSE(ready.ready()) << "model 'bad' did not load";
  inference::ServerMetadataResponse metadata;
  EXPECT_TRUE(stub_->ServerMetadata(&metadata_context, {}, &metadata).ok());
  EXPECT_EQ(metadata.name(), "tilewire-server");
}

TEST_F(InferenceServiceTest, DescribesModels) {
  Start();
  grpc::ClientContext context;
  inference::ModelMetadataRequest request;
  request.set_name("echo");
  inference::ModelMetadataResponse response;
  ASSERT_TRUE(stub_->ModelMetadata(&context, request, &response).ok());
  EXPECT_THAT(response.versions(), ElementsAre("1", "2"));
  EXPECT_EQ(response.inputs(0).name(), "image");
  EXPECT_THAT(response.inputs(0).shape(), ElementsAre(-1, 2, 3, 4));
  EXPECT_EQ(response.outputs(1).datatype(), "FP32");
  EXPECT_EQ(response.properties().at("labels"), "zero\none\n");
  EXPECT_EQ(response.properties().at("precision"), "exact");
}

TEST_F(InferenceServiceTest, KnowsWhichModelsAreReady) {
  Start();
  const std::pair<const char*, bool> models[] = {{"echo", true}, {"bad", false}};
  for (const auto& [name, expected] : models) {
    grpc::ClientContext context;
    inference::ModelReadyRequest request;
    request.set_name(name);
    inference::ModelReadyResponse response;
    ASSERT_TRUE(stub_->ModelReady(&context, request, &response).ok());
    EXPECT_EQ(response.ready(), expected) << name;
  }
}

TEST_F(InferenceServiceTest, IndexNamesEveryVersionAndWhyOneDidNotLoad) {
  Start();
  grpc::ClientContext context;
  inference::RepositoryIndexResponse response;
  ASSERT_TRUE(stub_->RepositoryIndex(&context, {}, &response).ok());
  ASSERT_EQ(response.models_size(), 3);
  EXPECT_EQ(response.models(0).name(), "bad");
  EXPECT_EQ(response.models(0).state(), "UNAVAILABLE");
  EXPECT_THAT(response.models(0).reason(), HasSubstr("not an ONNX file"));
  EXPECT_EQ(response.models(2).version(), "2");
  EXPECT_EQ(response.models(2).state(), "READY");
}

TEST_F(InferenceServiceTest, AnswersRawAndEchoesTheId) {
  Start();
  Response response;
  const grpc::Status status = Infer(GoodRequest(), &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.id(), "7");
  EXPECT_EQ(response.model_version(), "2");
  ASSERT_EQ(response.raw_output_contents_size(), 2);
  EXPECT_EQ(response.raw_output_contents(0), Floats(24));
  EXPECT_EQ(response.raw_output_contents(1), Floats(5, 100));
}

TEST_F(InferenceServiceTest, TypedContentsGiveTheSameAnswer) {
  Start();
  Request request = GoodRequest();
  request.clear_raw_input_contents();
  for (int i = 0; i < 24; ++i) request.mutable_inputs(0)->mutable_contents()->add_fp32_contents(i);
  for (int i = 0; i < 5; ++i) {
    request.mutable_inputs(1)->mutable_contents()->add_fp32_contents(100 + i);
  }
  Response response;
  const grpc::Status status = Infer(request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(response.raw_output_contents(0), Floats(24));
  EXPECT_EQ(response.raw_output_contents(1), Floats(5, 100));
}

TEST_F(InferenceServiceTest, ABatchOfNothingIsAnsweredRawAndTyped) {
  Start();
  for (const bool typed : {false, true}) {
    Request request = GoodRequest();
    for (auto& input : *request.mutable_inputs()) input.set_shape(0, 0);
    for (auto& raw : *request.mutable_raw_input_contents()) raw.clear();
    if (typed) request.clear_raw_input_contents();
    Response response;
    const grpc::Status status = Infer(request, &response);
    ASSERT_TRUE(status.ok()) << status.error_message();
    EXPECT_THAT(response.outputs(0).shape(), ElementsAre(0, 2, 3, 4));
    ASSERT_EQ(response.raw_output_contents_size(), 2);
    EXPECT_EQ(response.raw_output_contents(0), "");
    EXPECT_EQ(response.raw_output_contents(1), "");
    request.add_raw_input_contents("surplus");
    EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  }
}

TEST_F(InferenceServiceTest, LayoutsOfInputAndOutputAreIndependent) {
  Start();
  Request request = GoodRequest();
  auto* output = request.add_outputs();
  output->set_name("image_out");
  (*output->mutable_parameters())["layout"].set_string_param("nhwc");
  Response nhwc;
  ASSERT_TRUE(Infer(request, &nhwc).ok());
  EXPECT_THAT(nhwc.outputs(0).shape(), ElementsAre(1, 3, 4, 2));
  EXPECT_NE(nhwc.raw_output_contents(0), Floats(24));

  // Back again: what came in nhwc goes in as nhwc and comes out as nchw.
  auto* input = request.mutable_inputs(0);
  *input->mutable_shape() = nhwc.outputs(0).shape();
  (*input->mutable_parameters())["layout"].set_string_param("nhwc");
  request.set_raw_input_contents(0, nhwc.raw_output_contents(0));
  request.clear_outputs();
  Response nchw;
  ASSERT_TRUE(Infer(request, &nchw).ok());
  EXPECT_EQ(nchw.raw_output_contents(0), Floats(24));
}

TEST_F(InferenceServiceTest, TheTimeoutOfARequestEndsItsWork) {
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(30)); };
  Start();
  Request request = GoodRequest();
  (*request.mutable_parameters())["timeout"].set_int64_param(10'000);
  Response response;
  EXPECT_EQ(Infer(request, &response).error_code(), grpc::StatusCode::DEADLINE_EXCEEDED);
  (*request.mutable_parameters())["timeout"].set_uint64_param(60'000'000);
  (*request.mutable_parameters())["priority"].set_uint64_param(1);
  EXPECT_TRUE(Infer(request, &response).ok());
}

TEST_F(InferenceServiceTest, SaysWhereTheTimeWentIfItIsAsked) {
  engine_.on_run = [] { absl::SleepFor(absl::Milliseconds(30)); };
  Start();
  Request request = GoodRequest();
  Response response;
  EXPECT_TRUE(Infer(request, &response).ok());
  EXPECT_TRUE(response.parameters().empty());
  (*request.mutable_parameters())["timing"].set_bool_param(true);
  EXPECT_TRUE(Infer(request, &response).ok());
  EXPECT_GE(response.parameters().at("compute_us").int64_param(), 30'000);
  EXPECT_GE(response.parameters().at("queue_us").int64_param(), 0);
  EXPECT_EQ(response.parameters().at("reorder_us").int64_param(), 7000);
  EXPECT_GE(response.parameters().at("encode_us").int64_param(), 0);
  EXPECT_EQ(response.parameters().size(), 4);
  EXPECT_EQ(response.raw_output_contents(0), Floats(24));
}

TEST_F(InferenceServiceTest, WithoutAVersionTheHighestThatIsReadyServes) {
  WriteFile(directory_ / "echo/3/model.onnx", "broken");
  WriteFile(directory_ / ".hidden/1/model.onnx", "");
  Start();
  Response response;
  ASSERT_TRUE(Infer(GoodRequest(), &response).ok());
  EXPECT_EQ(response.model_version(), "2");
  Request third = GoodRequest();
  third.set_model_version("3");
  EXPECT_EQ(Infer(third, &response).error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_EQ(models_->Names(), (std::vector<std::string>{"bad", "echo"}));
}

TEST_F(InferenceServiceTest, UntilItIsLoadedAModelIsUnavailable) {
  models_ =
      std::make_unique<ModelRepository>(ScanDirectory(directory_.string(), {.latest = 0}).value());
  options_.host = "127.0.0.1";
  options_.port = 0;
  options_.ready_when_any = true;
  server_ = Server::Start(&engine_, models_.get(), options_).value();
  stub_ = inference::GRPCInferenceService::NewStub(server_->InProcessChannel());
  Response response;
  EXPECT_EQ(Infer(GoodRequest(), &response).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_FALSE(server_->Ready());
  for (const auto& served : models_->All()) {
    models_->Publish(LoadVersion(*served, &engine_, {}));
  }
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
  EXPECT_TRUE(server_->Ready());
}

struct ErrorCase {
  const char* why;
  std::function<void(Request*)> spoil;
  grpc::StatusCode code;
  const char* text;
};

// Clients of other servers send names that only those know.
TEST_F(InferenceServiceTest, OtherParametersAreIgnored) {
  Start();
  Request request = GoodRequest();
  for (const char* name : {"triton_enable_empty_final_response", "binary_data_output", "time", "x",
                           "headers", "sequence_length", "lay", "class", "memory"})
    (*request.mutable_parameters())[name].set_bool_param(true);
  (*request.mutable_inputs(0)->mutable_parameters())["binary_data_size"].set_int64_param(4);
  auto* output = request.add_outputs();
  output->set_name("row_out");
  (*output->mutable_parameters())["binary_data"].set_bool_param(true);
  Response response;
  EXPECT_TRUE(Infer(request, &response).ok());
}

// Every parameter that means something anywhere, and spellings of it, at every place.
TEST_F(InferenceServiceTest, AParameterIsServedOrRefusedByNameAtEveryPlace) {
  Start();
  enum Place { kRequest, kInput, kOutput };
  const struct {
    Place place;
    std::vector<std::string> served;
    std::string allowed;
  } places[] = {
      {kRequest,
       {"timeout", "priority", "timing"},
       "; the request takes 'timeout', 'priority', 'timing'"},
      {kInput, {"layout"}, "; an input takes 'layout'"},
      {kOutput,
       {"layout", "classification"},
       "; a requested output takes 'layout', 'classification'"},
  };
  const auto ask = [this](Place place, const std::string& name) {
    Request request = GoodRequest();
    request.add_outputs()->set_name(name == "classification" ? "row_out" : "image_out");
    auto* parameters = place == kRequest ? request.mutable_parameters()
                       : place == kInput ? request.mutable_inputs(0)->mutable_parameters()
                                         : request.mutable_outputs(0)->mutable_parameters();
    inference::InferParameter& value = (*parameters)[name];
    if (name == "layout") {
      value.set_string_param("nchw");
    } else if (name == "timing") {
      value.set_bool_param(true);
    } else {
      value.set_int64_param(60'000'000);
    }
    Response response;
    return Infer(request, &response);
  };
  for (const auto& [place, served, allowed] : places) {
    for (const char* name : {"timeout", "priority", "timing", "layout", "classification"}) {
      const grpc::Status status = ask(place, name);
      const bool belongs = std::find(served.begin(), served.end(), name) != served.end();
      EXPECT_EQ(status.ok(), belongs) << name << " at " << place << ": " << status.error_message();
      if (belongs) continue;
      EXPECT_THAT(status.error_message(),
                  HasSubstr(std::string("'") + name + "': it is a parameter"));
      EXPECT_THAT(status.error_message(), EndsWith(allowed));
    }
    for (const char* name :
         {"sequence_id", "sequence_start", "sequence_end", "shared_memory_region",
          "shared_memory_byte_size", "shared_memory_offset", "sequenceid"}) {
      EXPECT_THAT(ask(place, name).error_message(), HasSubstr("not supported")) << name << place;
    }
    for (const auto& [name, meant] :
         {std::pair("layuot", "layout"), std::pair("layouts", "layout"),
          std::pair("Layout", "layout"), std::pair("Timeout", "timeout"),
          std::pair("timeout_ms", "timeout"), std::pair("priorty", "priority"),
          std::pair("timming", "timing"), std::pair("Classification", "classification")}) {
      const grpc::Status status = ask(place, name);
      EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << name << place;
      EXPECT_THAT(status.error_message(), HasSubstr(std::string("is '") + meant + "' meant?"));
      EXPECT_THAT(status.error_message(), EndsWith(allowed));
    }
  }
}

TEST_F(InferenceServiceTest, RefusesWithCodeAndReason) {
  Start();
  const auto bad = grpc::StatusCode::INVALID_ARGUMENT;
  const ErrorCase cases[] = {
      {"no name", [](Request* r) { r->clear_model_name(); }, bad, "empty"},
      {"unknown model", [](Request* r) { r->set_model_name("x"); }, grpc::StatusCode::NOT_FOUND,
       "no model 'x'"},
      {"unknown version", [](Request* r) { r->set_model_version("3"); },
       grpc::StatusCode::NOT_FOUND, "version 3"},
      {"a version that is not an integer", [](Request* r) { r->set_model_version("-1x"); }, bad,
       "not an integer"},
      {"a model that did not load", [](Request* r) { r->set_model_name("bad"); },
       grpc::StatusCode::FAILED_PRECONDITION, "model.onnx: not an ONNX file"},
      {"rank", [](Request* r) { r->mutable_inputs(0)->add_shape(1); }, bad, "[N,2,3,4]"},
      {"negative", [](Request* r) { r->mutable_inputs(0)->set_shape(0, -1); }, bad, "[-1,2,3,4]"},
      {"zero", [](Request* r) { r->mutable_inputs(0)->set_shape(0, 0); }, bad, "the shape needs 0"},
      {"huge", [](Request* r) { r->mutable_inputs(0)->set_shape(0, int64_t{1} << 40); }, bad,
       "raw contents have 96 bytes"},
      {"overflow", [](Request* r) { r->mutable_inputs(0)->set_shape(0, INT64_MAX / 4); }, bad,
       "overflows"},
      {"datatype", [](Request* r) { r->mutable_inputs(0)->set_datatype("INT64"); }, bad, "FP32"},
      {"one byte short", [](Request* r) { r->mutable_raw_input_contents(0)->pop_back(); }, bad,
       "95 bytes"},
      {"one byte more", [](Request* r) { r->mutable_raw_input_contents(1)->push_back(0); }, bad,
       "21 bytes"},
      {"fewer raw entries", [](Request* r) { r->mutable_raw_input_contents()->RemoveLast(); }, bad,
       "1 entries"},
      {"more raw entries", [](Request* r) { r->add_raw_input_contents("x"); }, bad, "3 entries"},
      {"raw and typed",
       [](Request* r) { r->mutable_inputs(0)->mutable_contents()->add_fp32_contents(1); }, bad,
       "both"},
      {"the wrong typed field",
       [](Request* r) {
         r->clear_raw_input_contents();
         r->mutable_inputs(0)->mutable_contents()->add_int_contents(1);
       },
       bad, "int_contents"},
      {"neither", [](Request* r) { r->clear_raw_input_contents(); }, bad, "neither"},
      {"missing input",
       [](Request* r) {
         r->mutable_inputs()->RemoveLast();
         r->mutable_raw_input_contents()->RemoveLast();
       },
       bad, "'row' is missing"},
      {"twice", [](Request* r) { *r->mutable_inputs(1) = r->inputs(0); }, bad, "twice"},
      {"unknown input", [](Request* r) { r->mutable_inputs(0)->set_name("x"); }, bad, "'image'"},
      {"unknown output", [](Request* r) { r->add_outputs()->set_name("x"); }, bad, "'image_out'"},
      {"output twice",
       [](Request* r) {
         r->add_outputs()->set_name("row_out");
         r->add_outputs()->set_name("row_out");
       },
       bad, "twice"},
      {"unknown layout",
       [](Request* r) {
         (*r->mutable_inputs(0)->mutable_parameters())["layout"].set_string_param("chwn");
       },
       bad, "'chwn'"},
      {"layout of the wrong kind",
       [](Request* r) {
         (*r->mutable_inputs(0)->mutable_parameters())["layout"].set_int64_param(1);
       },
       bad, "string"},
      {"nhwc of a matrix",
       [](Request* r) {
         (*r->mutable_inputs(1)->mutable_parameters())["layout"].set_string_param("nhwc");
       },
       bad, "rank 3 to 5"},
      {"channels last, without saying so",
       [](Request* r) {
         auto* shape = r->mutable_inputs(0)->mutable_shape();
         shape->Clear();
         for (int dim : {1, 3, 4, 2}) shape->Add(dim);
       },
       bad, "'layout' to 'nhwc'"},
      {"a negative batch", [](Request* r) { r->mutable_inputs(0)->set_shape(0, -1); }, bad,
       "negative"},
      {"classes of pictures",
       [](Request* r) {
         auto* output = r->add_outputs();
         output->set_name("image_out");
         (*output->mutable_parameters())["classification"].set_int64_param(3);
       },
       bad, "output 'image_out': parameter 'classification': the output is [-1,2,3,4]"},
      {"a number of classes that is none",
       [](Request* r) {
         auto* output = r->add_outputs();
         output->set_name("row_out");
         (*output->mutable_parameters())["classification"].set_string_param("3");
       },
       bad, "'classification': it is not an integer"},
      {"an input in shared memory",
       [](Request* r) {
         (*r->mutable_inputs(0)->mutable_parameters())["shared_memory_region"].set_string_param(
             "r");
       },
       bad, "'shared_memory_region'"},
      {"a timeout that is not a number",
       [](Request* r) { (*r->mutable_parameters())["timeout"].set_string_param("1s"); }, bad,
       "'timeout'"},
      {"a priority below 0",
       [](Request* r) { (*r->mutable_parameters())["priority"].set_int64_param(-1); }, bad,
       "'priority'"},
      {"a priority that is not a number",
       [](Request* r) { (*r->mutable_parameters())["priority"].set_string_param("1"); }, bad,
       "'priority': it is not an integer from 0 to"},
      {"a timing that is not true or false",
       [](Request* r) { (*r->mutable_parameters())["timing"].set_int64_param(1); }, bad,
       "'timing'"},
      {"a misspelled priority",
       [](Request* r) { (*r->mutable_parameters())["prioritty"].set_int64_param(1); }, bad,
       "'prioritty': unknown; is 'priority' meant?"},
      {"a timeout with a unit",
       [](Request* r) { (*r->mutable_parameters())["Timeout_ms"].set_int64_param(1); }, bad,
       "is 'timeout' meant?"},
      {"a misspelled layout",
       [](Request* r) {
         (*r->mutable_inputs(0)->mutable_parameters())["Layout"].set_string_param("nhwc");
       },
       bad, "input 'image': parameter 'Layout': unknown; is 'layout' meant?"},
      {"a layout of the request",
       [](Request* r) { (*r->mutable_parameters())["layout"].set_string_param("nhwc"); }, bad,
       "of an input or of a requested output"},
      {"a timeout of an input",
       [](Request* r) {
         (*r->mutable_inputs(0)->mutable_parameters())["timeout"].set_int64_param(1);
       },
       bad, "of the request"},
      {"a name of a megabyte",
       [](Request* r) { r->mutable_inputs(0)->set_name(std::string(1 << 20, 'x')); }, bad, "..."},
  };
  for (const ErrorCase& test : cases) {
    SCOPED_TRACE(test.why);
    Request request = GoodRequest();
    test.spoil(&request);
    Response response;
    const grpc::Status status = Infer(request, &response);
    EXPECT_EQ(status.error_code(), test.code);
    EXPECT_THAT(status.error_message(), HasSubstr(test.text));
    EXPECT_THAT(status.error_message(), Not(HasSubstr(directory_.string())));
    EXPECT_LT(status.error_message().size(), 1024);
  }
}

}  // namespace
}  // namespace tilewire::service
