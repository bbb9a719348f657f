// SPDX-License-Identifier: Apache-2.0
//
// ModelStreamInfer: order, errors, bounds, and how a stream ends.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/synchronization/notification.h"
#include "google/protobuf/descriptor.pb.h"
#include "service/rpc/reflection.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Request = inference::ModelInferRequest;
using StreamResponse = inference::ModelStreamInferResponse;
using grpc::StatusCode;

Request NumberedRequest(int number) {
  Request request = GoodRequest();
  request.set_id(absl::StrCat(number));
  request.set_raw_input_contents(1, Floats(5, number));
  return request;
}

class StreamTest : public ServedFixture {
 protected:
  // Opens a stream; headers may be added to `context_` before.
  void Open() { stream_ = stub_->ModelStreamInfer(&context_); }

  // Sends all, says that they are all, and reads what comes.
  std::vector<StreamResponse> Exchange(const std::vector<Request>& requests) {
    std::thread writer([&] {
      for (const Request& request : requests) stream_->Write(request);
      stream_->WritesDone();
    });
    std::vector<StreamResponse> responses;
    StreamResponse response;
    while (stream_->Read(&response)) responses.push_back(response);
    writer.join();
    return responses;
  }

  grpc::ClientContext context_;
  std::unique_ptr<grpc::ClientReaderWriter<Request, StreamResponse>> stream_;
};

TEST_F(StreamTest, AnswersEachRequestInTheOrderOfTheRequests) {
  Start(/*max_queue=*/256);
  Open();
  std::vector<Request> requests;
  for (int i = 0; i < 100; ++i) requests.push_back(NumberedRequest(i));
  const std::vector<StreamResponse> responses = Exchange(requests);
  ASSERT_EQ(responses.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    EXPECT_EQ(responses[i].error_message(), "");
    EXPECT_EQ(responses[i].infer_response().id(), absl::StrCat(i));
    EXPECT_EQ(responses[i].infer_response().raw_output_contents(1), Floats(5, i));
  }
  EXPECT_TRUE(stream_->Finish().ok());
  ExpectNothingIsHeld();
}

TEST_F(StreamTest, GivesTheBytesOfAnOrdinaryAnswer) {
  Start();
  inference::ModelInferResponse plain;
  ASSERT_TRUE(Infer(GoodRequest(), &plain).ok());
  Open();
  const std::vector<StreamResponse> responses = Exchange({GoodRequest()});
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_EQ(responses[0].infer_response().SerializeAsString(), plain.SerializeAsString());
}

TEST_F(StreamTest, AStreamWithoutRequestsEndsWell) {
  Start();
  Open();
  EXPECT_THAT(Exchange({}), IsEmpty());
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(StreamTest, ARequestThatFailsIsAnsweredByItsMessageAndTheStreamGoesOn) {
  Start();
  Open();
  Request unknown = NumberedRequest(1), short_row = NumberedRequest(2);
  unknown.set_model_name("nope");
  short_row.set_raw_input_contents(1, "123");
  const std::vector<StreamResponse> responses =
      Exchange({NumberedRequest(0), unknown, short_row, NumberedRequest(3)});
  ASSERT_EQ(responses.size(), 4u);
  EXPECT_THAT(responses[1].error_message(), HasSubstr("no model 'nope'"));
  EXPECT_EQ(responses[1].infer_response().id(), "1");
  EXPECT_THAT(responses[2].error_message(), HasSubstr("input 'row'"));
  for (const int good : {0, 3}) {
    EXPECT_EQ(responses[good].error_message(), "");
    EXPECT_EQ(responses[good].infer_response().id(), absl::StrCat(good));
  }
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(StreamTest, EndsWithTheCodeOfAnErrorWhereTheHeaderAsksForIt) {
  Start();
  context_.AddMetadata("triton_grpc_error", "true");
  Open();
  Request unknown = NumberedRequest(1);
  unknown.set_model_name("nope");
  const std::vector<StreamResponse> responses =
      Exchange({NumberedRequest(0), unknown, NumberedRequest(2)});
  ASSERT_EQ(responses.size(), 1u);
  EXPECT_EQ(responses[0].infer_response().id(), "0");
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("nope"));
  ExpectNothingIsHeld();
}

TEST_F(StreamTest, SaysThatAnAnswerIsTheOnlyOneWhereThatIsAskedFor) {
  Start();
  Open();
  Request asks = NumberedRequest(0);
  (*asks.mutable_parameters())["triton_enable_empty_final_response"].set_bool_param(true);
  const std::vector<StreamResponse> responses = Exchange({asks, NumberedRequest(1)});
  ASSERT_EQ(responses.size(), 2u);
  const auto& told = responses[0].infer_response().parameters();
  ASSERT_EQ(told.count("triton_final_response"), 1u);
  EXPECT_TRUE(told.at("triton_final_response").bool_param());
  EXPECT_THAT(responses[1].infer_response().parameters(), IsEmpty());
}

TEST_F(StreamTest, ReadsNoMoreThanItsBoundAheadOfTheAnswers) {
  absl::Notification go_on;
  engine_.on_run = [&go_on] { go_on.WaitForNotification(); };
  options_.stream_in_flight = 3;
  Start(/*max_queue=*/256);
  Open();
  std::thread writer([this] {
    for (int i = 0; i < 40; ++i) stream_->Write(NumberedRequest(i));
    stream_->WritesDone();
  });
  const int64_t one = NumberedRequest(0).ByteSizeLong();
  EXPECT_TRUE(Happens([&] { return server_->admission()->bytes() >= 3 * one; }));
  int64_t most = 0;
  for (int i = 0; i < 50; ++i) {
    absl::SleepFor(absl::Milliseconds(2));
    most = std::max(most, server_->admission()->bytes());
  }
  // The one that runs holds its inputs and outputs as well, of 24 and 5 numbers each.
  constexpr int64_t kTensors = 2 * (24 + 5) * sizeof(float);
  EXPECT_LE(most, 3 * one + kTensors);
  go_on.Notify();
  StreamResponse response;
  int answers = 0;
  while (stream_->Read(&response)) ++answers;
  writer.join();
  EXPECT_EQ(answers, 40);
  EXPECT_TRUE(stream_->Finish().ok());
}

TEST_F(StreamTest, AClientThatLeavesEndsAllItsRequests) {
  engine_.endless = true;
  Start(/*max_queue=*/256);
  Open();
  for (int i = 0; i < 8; ++i) stream_->Write(NumberedRequest(i));
  while (server_->admission()->bytes() == 0) absl::SleepFor(absl::Milliseconds(1));
  context_.TryCancel();
  EXPECT_EQ(stream_->Finish().error_code(), StatusCode::CANCELLED);
  ExpectNothingIsHeld();
  engine_.endless = false;
  inference::ModelInferResponse response;
  EXPECT_TRUE(Infer(GoodRequest(), &response).ok());
}

TEST_F(StreamTest, ItsDeadlineEndsItsRequests) {
  engine_.endless = true;
  Start();
  context_.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
  Open();
  stream_->Write(NumberedRequest(0));
  EXPECT_EQ(stream_->Finish().error_code(), StatusCode::DEADLINE_EXCEEDED);
  ExpectNothingIsHeld();
}

TEST_F(StreamTest, ADrainAnswersWhatWasReadAndEndsTheStream) {
  absl::Notification runs, go_on;
  engine_.on_run = [&] {
    if (!runs.HasBeenNotified()) runs.Notify();
    go_on.WaitForNotification();
  };
  options_.ready_when_any = true;
  Start();
  ConnectOverTcp();
  Open();
  stream_->Write(NumberedRequest(0));
  runs.WaitForNotification();
  std::thread drain([this] { server_->Drain(); });
  while (server_->Ready()) std::this_thread::yield();
  go_on.Notify();
  StreamResponse response;
  EXPECT_TRUE(stream_->Read(&response));
  EXPECT_EQ(response.infer_response().id(), "0");
  EXPECT_FALSE(stream_->Read(&response));
  const grpc::Status status = stream_->Finish();
  EXPECT_EQ(status.error_code(), StatusCode::UNAVAILABLE);
  EXPECT_THAT(status.error_message(), HasSubstr("draining"));
  drain.join();
}

TEST_F(StreamTest, AnIdleStreamDoesNotHoldUpADrain) {
  options_.drain_timeout = absl::Hours(1);  // longer than any test may take
  Start();
  Open();
  stream_->Write(NumberedRequest(0));
  StreamResponse response;
  ASSERT_TRUE(stream_->Read(&response));
  server_->Drain();
  EXPECT_EQ(stream_->Finish().error_code(), StatusCode::UNAVAILABLE);
}

TEST_F(StreamTest, CountsItsRequestsAsModelInferDoes) {
  Start();
  Open();
  Request unknown = NumberedRequest(1);
  unknown.set_model_name("nope");
  EXPECT_EQ(Exchange({NumberedRequest(0), unknown, NumberedRequest(2)}).size(), 3u);
  EXPECT_TRUE(stream_->Finish().ok());
  EXPECT_EQ(server_->log().Requests(absl::StatusCode::kOk), 2);
  EXPECT_EQ(server_->log().Requests(absl::StatusCode::kNotFound), 1);
}

class ReflectionTest : public ServedFixture {
 protected:
  using Question = grpc::reflection::v1alpha::ServerReflectionRequest;
  using Answer = grpc::reflection::v1alpha::ServerReflectionResponse;

  template <typename Service>
  std::vector<Answer> Ask(const std::vector<Question>& questions) {
    const auto stub = Service::NewStub(server_->InProcessChannel());
    grpc::ClientContext context;
    const auto stream = stub->ServerReflectionInfo(&context);
    std::vector<Answer> answers;
    for (const Question& question : questions) {
      stream->Write(question);
      if (!stream->Read(&answers.emplace_back())) answers.pop_back();
    }
    stream->WritesDone();
    status_ = stream->Finish();
    return answers;
  }

  grpc::Status status_;
};

TEST_F(ReflectionTest, ListsTheServicesUnderBothVersions) {
  options_.reflection = true;
  options_.serve_primitives = false;
  Start();
  Question question;
  question.set_host("here");
  question.set_list_services("*");
  for (const auto& answers :
       {Ask<Reflection::Alpha>({question}), Ask<Reflection::V1>({question})}) {
    ASSERT_EQ(answers.size(), 1u);
    EXPECT_EQ(answers[0].valid_host(), "here");
    EXPECT_EQ(answers[0].original_request().list_services(), "*");
    std::vector<std::string> names;
    for (const auto& service : answers[0].list_services_response().service()) {
      names.push_back(service.name());
    }
    EXPECT_THAT(names,
                ElementsAre("inference.GRPCInferenceService", "tilewire.v1.ModelService",
                            "grpc.health.v1.Health", "grpc.reflection.v1alpha.ServerReflection",
                            "grpc.reflection.v1.ServerReflection"));
  }
}

TEST_F(ReflectionTest, TellsTheFilesOfServicesWithWhatTheyImportAndNoOthers) {
  options_.reflection = true;
  options_.serve_primitives = false;
  Start();
  Question symbol, file, other, extension, none, own;
  symbol.set_file_containing_symbol("inference.GRPCInferenceService.ModelInfer");
  file.set_file_by_filename("protos/health.proto");
  other.set_file_containing_symbol("tilewire.v1.PrimitiveService");
  own.set_file_containing_symbol("grpc.reflection.v1.ServerReflection");
  extension.mutable_file_containing_extension()->set_containing_type("inference.ModelConfig");
  const std::vector<Answer> answers =
      Ask<Reflection::Alpha>({symbol, file, other, extension, none, own});
  ASSERT_EQ(answers.size(), 6u);
  const auto& files = answers[0].file_descriptor_response().file_descriptor_proto();
  ASSERT_EQ(files.size(), 2);
  google::protobuf::FileDescriptorProto parsed;
  ASSERT_TRUE(parsed.ParseFromString(files[0]));
  EXPECT_EQ(parsed.name(), "protos/open_inference.proto");
  ASSERT_TRUE(parsed.ParseFromString(files[1]));
  EXPECT_EQ(parsed.name(), "protos/model_config.proto");
  EXPECT_EQ(answers[1].file_descriptor_response().file_descriptor_proto_size(), 1);
  EXPECT_EQ(answers[2].error_response().error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(answers[3].error_response().error_code(), StatusCode::NOT_FOUND);
  EXPECT_EQ(answers[4].error_response().error_code(), StatusCode::UNIMPLEMENTED);
  EXPECT_EQ(answers[5].file_descriptor_response().file_descriptor_proto_size(), 2);
  EXPECT_TRUE(status_.ok());
}

TEST_F(ReflectionTest, IsOffUnlessAskedFor) {
  Start();
  EXPECT_THAT(Ask<Reflection::Alpha>({Question()}), IsEmpty());
  EXPECT_EQ(status_.error_code(), StatusCode::UNIMPLEMENTED);
}

}  // namespace
}  // namespace tilewire::service
