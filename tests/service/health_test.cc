// SPDX-License-Identifier: Apache-2.0
//
// grpc.health.v1 and server reflection, spoken in bytes: Debian has no code for them.
#include "service/front/health.h"

#include <gmock/gmock.h>

#include <deque>
#include <memory>

#include "grpcpp/generic/generic_stub.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;

// Field 1 of HealthCheckResponse.
constexpr char kServing[] = "\x08\x01";
constexpr char kNotServing[] = "\x08\x02";

class HealthTest : public ServedFixture {
 protected:
  // One message there and one back; the status's code where there is none.
  std::string Ask(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(server_->InProcessChannel());
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareCall(&context, method, &queue);
    const grpc::Slice slice(bytes);
    grpc::ByteBuffer reply;
    grpc::Status status;
    bool answered = false;
    call->StartCall(nullptr);
    Wait(&queue);
    call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    Wait(&queue);
    call->Read(&reply, nullptr);
    answered = Wait(&queue);
    call->Finish(&status, nullptr);
    Wait(&queue);
    grpc::Slice whole;
    if (!answered || !reply.DumpToSingleSlice(&whole).ok()) {
      return std::to_string(status.error_code());
    }
    return std::string(reinterpret_cast<const char*>(whole.begin()), whole.size());
  }

  static bool Wait(grpc::CompletionQueue* queue) {
    void* tag = nullptr;
    bool ok = false;
    return queue->Next(&tag, &ok) && ok;
  }

  std::string Health(const std::string& service) {
    return Ask("/grpc.health.v1.Health/Check",
               "\x0a" + std::string(1, static_cast<char>(service.size())) + service);
  }
};

// One call that watches, and what came of it.
struct Watch {
  grpc::ClientContext context;
  std::unique_ptr<grpc::GenericClientAsyncReaderWriter> call;
  bool answered = false;

  grpc::Status End(grpc::CompletionQueue* queue) {
    grpc::Status status;
    void* tag = nullptr;
    bool ok = false;
    call->Finish(&status, nullptr);
    queue->Next(&tag, &ok);
    return status;
  }
};

TEST_F(HealthTest, AWatchTooManyIsToldHowManyThereAre) {
  Start();
  grpc::GenericStub stub(server_->InProcessChannel());
  grpc::CompletionQueue queue;
  std::deque<Watch> watches(HealthService::kMostWatches + 1);
  for (Watch& watch : watches) {
    watch.call = stub.PrepareCall(&watch.context, "/grpc.health.v1.Health/Watch", &queue);
    watch.call->StartCall(nullptr);
    Wait(&queue);
    const grpc::Slice slice("");
    watch.call->WriteLast(grpc::ByteBuffer(&slice, 1), {}, nullptr);
    Wait(&queue);
    grpc::ByteBuffer reply;
    watch.call->Read(&reply, nullptr);
    watch.answered = Wait(&queue);
  }
  EXPECT_TRUE(watches[HealthService::kMostWatches - 1].answered);
  EXPECT_FALSE(watches.back().answered);
  const grpc::Status refused = watches.back().End(&queue);
  EXPECT_EQ(refused.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_THAT(refused.error_message(), HasSubstr("256 calls watch the health already"));
  watches.pop_back();
  for (Watch& watch : watches) {
    watch.context.TryCancel();
    watch.End(&queue);
  }
}

TEST_F(HealthTest, TellsOfServerServicesAndModelsUntilTheDrain) {
  options_.ready_when_any = true;
  Start();
  const std::string services[] = {"", "inference.GRPCInferenceService",
                                  "tilewire.v1.PrimitiveService", "echo"};
  for (const std::string& service : services) EXPECT_EQ(Health(service), kServing) << service;
  EXPECT_EQ(Health("bad"), kNotServing) << "it did not load";
  EXPECT_EQ(Health("none"), std::to_string(grpc::StatusCode::NOT_FOUND));
  server_->StartDrain();
  for (const std::string& service : services) EXPECT_EQ(Health(service), kNotServing) << service;
}

TEST_F(HealthTest, TheProcessIsAliveWithoutModelsAndWhileItDrains) {
  Start();
  EXPECT_EQ(Health(""), kNotServing);
  EXPECT_EQ(Health("liveness"), kServing);
  server_->StartDrain();
  EXPECT_EQ(Health("liveness"), kServing);
}

TEST_F(HealthTest, OneModelThatDidNotLoadMakesTheServerNotReadyUnlessAnySuffices) {
  Start();
  EXPECT_EQ(Health(""), kNotServing);
  EXPECT_EQ(Health("echo"), kServing);
}

TEST_F(HealthTest, RequestsAreBounded) {
  Start();
  EXPECT_EQ(Ask("/grpc.health.v1.Health/Check", std::string(100'000, 'x')),
            std::to_string(grpc::StatusCode::INVALID_ARGUMENT));
}

TEST_F(HealthTest, ReflectionIsServedOnRequestOnly) {
  Start();
  EXPECT_EQ(Ask("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*"),
            std::to_string(grpc::StatusCode::UNIMPLEMENTED));
}

TEST_F(HealthTest, ReflectionListsTheServices) {
  options_.reflection = true;
  Start();
  const std::string reply =
      Ask("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo", "\x3a\x01*");
  EXPECT_THAT(reply, HasSubstr("inference.GRPCInferenceService"));
  EXPECT_THAT(reply, HasSubstr("tilewire.v1.PrimitiveService"));
  EXPECT_THAT(reply, HasSubstr("grpc.health.v1.Health"));
}

}  // namespace
}  // namespace tilewire::service
