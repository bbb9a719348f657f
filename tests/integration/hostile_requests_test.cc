// SPDX-License-Identifier: Apache-2.0
//
// The real service on the real engine under a thousand requests that are wrong. After each of them
// a good one is answered with the bits of the first answer.
#include "tests/integration/hostile_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "google/protobuf/stubs/logging.h"
#include "grpcpp/generic/generic_stub.h"
#include "service/server.h"
#include "tests/support/loaded_repository.h"

namespace tilewire::testing {
namespace {

using grpc::StatusCode;
using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::Not;
using Request = inference::ModelInferRequest;
using Response = inference::ModelInferResponse;

constexpr int kRequests = 1000;
// Neither an answer nor a refusal may take longer.
constexpr std::chrono::seconds kPatience(60);

struct Answer {
  grpc::Status status;
  Response response;
};

int OpenDescriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<int>(std::distance(begin(all), end(all)));
}

int64_t ResidentBytes() {
  int64_t size = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> size >> resident;
  return resident * 4096;
}

// One server for all tests: what an earlier one did to it must not matter.
class HostileRequests : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    google::protobuf::SetLogHandler(nullptr);  // as the server does
    engine_ = Engine::Create({}).value().release();
    models_ = testing::OpenRepository("deploy/models", engine_).value().release();
    service::ServerOptions options;
    options.host = "127.0.0.1";
    options.port = 0;
    server_ = service::Server::Start(engine_, models_, options).value().release();
  }
  static void TearDownTestSuite() {
    delete server_;
    delete models_;
    delete engine_;
  }

  // Over TCP, so that messages arrive in slices as the network cuts them.
  void SetUp() override {
    stub_ = std::make_unique<grpc::GenericStub>(grpc::CreateChannel(
        absl::StrCat("127.0.0.1:", server_->port()), grpc::InsecureChannelCredentials()));
    for (const char* layout : {"nchw", "nhwc"}) {
      good_.push_back(DigitsRequest(2, layout).SerializeAsString());
      const Answer answer = Send(good_.back());
      ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
      expected_.push_back(answer.response.SerializeAsString());
    }
  }

  Answer Send(const std::string& bytes, const std::string& method = "ModelInfer",
              const std::string& service = kInference) {
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + kPatience);
    grpc::CompletionQueue queue;
    const auto call =
        stub_->PrepareUnaryCall(&context, absl::StrCat("/", service, "/", method), request, &queue);
    call->StartCall();
    Answer answer;
    call->Finish(&reply, &answer.status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    if (answer.status.ok() && method == "ModelInfer") Parse(reply, &answer.response);
    return answer;
  }

  static void Parse(const grpc::ByteBuffer& reply, Response* response) {
    grpc::Slice slice;
    ASSERT_TRUE(reply.DumpToSingleSlice(&slice).ok());
    ASSERT_TRUE(response->ParseFromArray(slice.begin(), static_cast<int>(slice.size())));
  }

  void ExpectGoodAnswersAsEver(int index) {
    const Answer answer = Send(good_[index % 2]);
    ASSERT_TRUE(answer.status.ok()) << answer.status.error_message();
    // EXPECT_EQ would print kilobytes.
    ASSERT_TRUE(answer.response.SerializeAsString() == expected_[index % 2]) << "other bits";
  }

  static void ExpectRefused(const Answer& answer) {
    EXPECT_THAT(answer.status.error_message(), Not(HasSubstr("/"))) << "names a path";
    EXPECT_LT(answer.status.error_message().size(), 1024);
    EXPECT_FALSE(answer.status.error_message().empty());
  }

  static Engine* engine_;
  static service::ModelRepository* models_;
  static service::Server* server_;
  std::unique_ptr<grpc::GenericStub> stub_;
  std::vector<std::string> good_, expected_;  // by layout
};

Engine* HostileRequests::engine_ = nullptr;
service::ModelRepository* HostileRequests::models_ = nullptr;
service::Server* HostileRequests::server_ = nullptr;

std::vector<HostileKind> AllKinds() {
  std::vector<HostileKind> kinds;
  for (const auto& some : {HostileTensors(), HostileNames(), HostileWireFormat()}) {
    kinds.insert(kinds.end(), some.begin(), some.end());
  }
  return kinds;
}

void ExpectWholeAnswer(const std::string& bytes, const Response& response) {
  Request request;
  ASSERT_TRUE(request.ParseFromString(bytes));
  EXPECT_TRUE(response.id() == request.id()) << "the id is not echoed";
  const int outputs = request.outputs().empty() ? 2 : request.outputs_size();
  EXPECT_EQ(response.outputs_size(), outputs);
  EXPECT_EQ(response.raw_output_contents_size(), outputs);
}

TEST_F(HostileRequests, EachGetsItsCodeAndTheNextGoodOneItsBits) {
  const std::vector<HostileKind> kinds = AllKinds();
  for (int i = 0; i < kRequests && !HasFailure(); ++i) {
    const HostileKind& kind = kinds[i % kinds.size()];
    Random random(i);
    SCOPED_TRACE(absl::StrCat("request ", i, ": ", kind.why));
    const std::string bytes = kind.make(&random);
    const Answer answer = Send(bytes);
    EXPECT_EQ(answer.status.error_code(), kind.code) << answer.status.error_message();
    if (answer.status.ok()) {
      ExpectWholeAnswer(bytes, answer.response);
    } else {
      ExpectRefused(answer);
    }
    ExpectGoodAnswersAsEver(i);
  }
}

TEST_F(HostileRequests, FlippedBitsAreAnsweredOrRefusedButNeverABug) {
  for (int i = 0; i < kRequests / 2 && !HasFailure(); ++i) {
    SCOPED_TRACE(absl::StrCat("request ", i));
    Random random(i);
    std::string bytes = RandomRequest(&random).SerializeAsString();
    for (int64_t flips = random.Integer(1, 4); flips > 0; --flips) {
      bytes[random.Integer(0, 90)] ^= static_cast<char>(1 << random.Integer(0, 7));
    }
    const Answer answer = Send(bytes);
    EXPECT_THAT(answer.status.error_code(),
                AnyOf(StatusCode::OK, StatusCode::INVALID_ARGUMENT, StatusCode::NOT_FOUND));
    ExpectGoodAnswersAsEver(i);
  }
}

TEST_F(HostileRequests, OtherMethodsRefuseTheirsToo) {
  const std::vector<HostileMethod> kinds = HostileMethods();
  for (int i = 0; i < kRequests / 5 && !HasFailure(); ++i) {
    const HostileMethod& kind = kinds[i % kinds.size()];
    Random random(i);
    SCOPED_TRACE(absl::StrCat("request ", i, ": ", kind.method, ": ", kind.why));
    const Answer answer = Send(kind.make(&random), kind.method, kind.service);
    EXPECT_EQ(answer.status.error_code(), kind.code) << answer.status.error_message();
    ExpectRefused(answer);
    ExpectGoodAnswersAsEver(i);
  }
}

// Each is answered by one message, the good ones in between with their bits.
TEST_F(HostileRequests, AStreamOutlivesThemAll) {
  const std::vector<HostileKind> kinds = AllKinds();
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + kPatience);
  grpc::CompletionQueue queue;
  const auto stream =
      stub_->PrepareCall(&context, "/inference.GRPCInferenceService/ModelStreamInfer", &queue);
  const auto await = [&queue](int events) {
    bool all = true;
    for (; events > 0; --events) {
      void* tag = nullptr;
      bool ok = false;
      queue.Next(&tag, &ok);
      all &= ok;
    }
    return all;
  };
  stream->StartCall(nullptr);
  ASSERT_TRUE(await(1));
  for (size_t i = 0; i < 2 * kinds.size() && !HasFailure(); ++i) {
    const HostileKind& kind = kinds[i / 2];
    Random random(static_cast<int>(i));
    SCOPED_TRACE(kind.why);
    const std::string bytes = i % 2 == 0 ? kind.make(&random) : good_[0];
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer reply;
    stream->Write(grpc::ByteBuffer(&slice, 1), nullptr);
    stream->Read(&reply, nullptr);
    ASSERT_TRUE(await(2));
    grpc::Slice whole;
    ASSERT_TRUE(reply.DumpToSingleSlice(&whole).ok());
    inference::ModelStreamInferResponse response;
    ASSERT_TRUE(response.ParseFromArray(whole.begin(), static_cast<int>(whole.size())));
    const bool good = i % 2 == 1 || kind.code == StatusCode::OK;
    EXPECT_EQ(response.error_message().empty(), good) << response.error_message();
    if (i % 2 == 1) {
      EXPECT_TRUE(response.infer_response().SerializeAsString() == expected_[0]) << "other bits";
    }
  }
  stream->WritesDone(nullptr);
  grpc::Status status;
  stream->Finish(&status, nullptr);
  await(2);
  EXPECT_TRUE(status.ok()) << status.error_message();
}

TEST_F(HostileRequests, LeaveNothingBehind) {
  const std::vector<HostileKind> kinds = AllKinds();
  const auto send_all = [&](int seed) {
    for (const HostileKind& kind : kinds) {
      Random random(seed);
      Send(kind.make(&random));
    }
  };
  for (int round = 0; round < 4; ++round) send_all(round);
  const int descriptors = OpenDescriptors();
  const int64_t bytes = ResidentBytes();
  for (int round = 0; round < 12; ++round) send_all(round);
  EXPECT_LE(OpenDescriptors(), descriptors);
  // Twelve rounds bring more than 150 MB: what one of them left would show.
  EXPECT_LT(ResidentBytes() - bytes, int64_t{32} << 20);
}

}  // namespace
}  // namespace tilewire::testing
