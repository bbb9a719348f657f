// SPDX-License-Identifier: Apache-2.0
//
// The table of methods against what the server registers and answers.
#include "service/front/method_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "google/protobuf/descriptor.h"
#include "grpcpp/generic/generic_stub.h"
#include "service/rpc/reflection.h"
#include "tests/service/served_fixture.h"

namespace tilewire::service {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class MethodTableTest : public ServedFixture {
 protected:
  // The names of all services that the server has registered, as its reflection tells them.
  std::vector<std::string> Services() {
    const auto stub = Reflection::V1::NewStub(server_->InProcessChannel());
    grpc::ClientContext context;
    const auto stream = stub->ServerReflectionInfo(&context);
    grpc::reflection::v1alpha::ServerReflectionRequest question;
    question.set_list_services("*");
    grpc::reflection::v1alpha::ServerReflectionResponse answer;
    EXPECT_TRUE(stream->Write(question) && stream->Read(&answer));
    stream->WritesDone();
    EXPECT_TRUE(stream->Finish().ok());
    std::vector<std::string> names;
    for (const auto& service : answer.list_services_response().service()) {
      names.push_back(service.name());
    }
    return names;
  }

  // Their methods, as "package.Service/Method".
  std::set<std::string> Registered() {
    std::set<std::string> names;
    for (const std::string& service : Services()) {
      const auto* descriptor =
          google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(service);
      EXPECT_NE(descriptor, nullptr) << service;
      for (int i = 0; descriptor != nullptr && i < descriptor->method_count(); ++i) {
        names.insert(absl::StrCat(service, "/", descriptor->method(i)->name()));
      }
    }
    return names;
  }

  grpc::Status Call(const std::string& method, const std::string& bytes) {
    grpc::GenericStub stub(server_->InProcessChannel());
    const grpc::Slice slice(bytes);
    const grpc::ByteBuffer request(&slice, 1);
    grpc::ByteBuffer reply;
    grpc::ClientContext context;
    grpc::CompletionQueue queue;
    const auto call = stub.PrepareUnaryCall(&context, absl::StrCat("/", method), request, &queue);
    call->StartCall();
    grpc::Status status;
    call->Finish(&reply, &status, nullptr);
    void* tag = nullptr;
    bool ok = false;
    queue.Next(&tag, &ok);
    return status;
  }
};

TEST_F(MethodTableTest, HasARowForEveryMethodOfEveryServiceAndNoOther) {
  options_.reflection = true;
  Start();
  std::set<std::string> rows;
  for (const Method& method : kMethods) {
    EXPECT_TRUE(rows.insert(absl::StrCat(method.service, "/", method.rpc)).second)
        << method.rpc << " has two rows";
  }
  EXPECT_EQ(rows, Registered());
}

TEST_F(MethodTableTest, ARequestIsBoundedAsItsRowSaysBeforeItIsParsed) {
  options_.transport.max_message_bytes = 1 << 20;
  Start();
  const std::string large(70'000, 'x');
  for (const Method& method : kMethods) {
    if (method.service != Inference::service_full_name() || method.rpc == "ModelStreamInfer") {
      continue;
    }
    const grpc::Status status = Call(absl::StrCat(method.service, "/", method.rpc), large);
    if (method.bound == RequestBound::kMessage || !OpenRights().Has(method.right)) {
      EXPECT_THAT(status.error_message(), Not(HasSubstr("70000 bytes"))) << method.rpc;
      continue;
    }
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << method.rpc;
    EXPECT_EQ(status.error_message(), absl::StrCat("the request of ", method.rpc,
                                                   " has 70000 bytes; at most 65536 are allowed"));
  }
}

TEST_F(MethodTableTest, WhatAProbeCallsShowsNothingAndChangesNothing) {
  for (const Method& method : kMethods) {
    if (method.probe) {
      EXPECT_EQ(method.right, Right::kHealth) << method.rpc;
    }
  }
}

TEST_F(MethodTableTest, ARightThatIsClosedIsRefusedByNameUntilItIsOpened) {
  constexpr Method kLoad = {"a.Service", "Load", Right::kRepository, RequestBound::kNames, false};
  OpenRights open;
  const absl::Status refused = CheckRight(kLoad.rpc, kLoad.right, open);
  EXPECT_EQ(refused.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(refused.message()),
              AllOf(StartsWith("Load "), HasSubstr("'repository'"), HasSubstr("--open_rights")));
  open.Open(Right::kRepository);
  EXPECT_TRUE(CheckRight(kLoad.rpc, kLoad.right, open).ok());
  EXPECT_FALSE(open.Has(Right::kSettings));
}

}  // namespace
}  // namespace tilewire::service
