// SPDX-License-Identifier: Apache-2.0
//
// Replicas that take turns, and what happens to calls that they refuse.
#include "client/connection.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/str_cat.h"
#include "client/client.h"
#include "tests/client/fake_server.h"
#include "tests/support/status_matchers.h"

namespace tilewire::client {
namespace {

using ::tilewire::testing::IsOk;
using ::tilewire::testing::StatusIs;

constexpr absl::Duration kPatience = absl::Seconds(60);

class ReplicasTest : public ::testing::Test {
 protected:
  static std::unique_ptr<Client> ClientOf(const std::string& address, int attempts = 4) {
    auto client = Client::Connect(address, {.timeout = kPatience, .attempts = attempts});
    return client.ok() ? *std::move(client) : nullptr;
  }
  static absl::Status Call(Client* client) {
    return client->Infer("echo", {Tensor::FromFloats("x", {1}, {1.0f})}).status();
  }
  // Refuses the first `count` requests.
  static void RefuseFirst(int count, const std::string& pushback_ms, FakeService* service) {
    service->refusal_pushback_ms = pushback_ms;
    service->edit = [count](int number, const auto&, auto*) {
      return number < count ? grpc::Status(grpc::StatusCode::UNAVAILABLE, "queue is full")
                            : grpc::Status::OK;
    };
  }
  // Counts the requests in `count`.
  static void Count(std::atomic<int>* count, FakeService* service) {
    service->edit = [count](int, const auto&, auto*) {
      ++*count;
      return grpc::Status::OK;
    };
  }

  FakeService service_, other_service_;
  FakeServer server_{&service_}, other_server_{&other_service_};
};

TEST_F(ReplicasTest, WhatIsRefusedIsTriedAgainAfterThePushback) {
  RefuseFirst(3, "1", &service_);
  EXPECT_THAT(Call(ClientOf(server_.address()).get()), IsOk());
}

TEST_F(ReplicasTest, AServerOfThisMachineIsNotAskedThroughAProxy) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);  // which does not answer
  const auto client = Client::Connect(server_.address(), {.timeout = kPatience, .attempts = 1});
  unsetenv("http_proxy");
  ASSERT_THAT(client, IsOk());
  EXPECT_THAT(Call(client->get()), IsOk());
}

TEST_F(ReplicasTest, AttemptsEnd) {
  RefuseFirst(3, "1", &service_);
  EXPECT_THAT(Call(ClientOf(server_.address(), 3).get()),
              StatusIs(absl::StatusCode::kUnavailable, "queue is full"));
  EXPECT_THAT(Call(ClientOf(server_.address(), 1).get()), IsOk()) << "the fourth";
}

TEST_F(ReplicasTest, AServerMayForbidAnotherAttempt) {
  RefuseFirst(1, "-1", &service_);
  EXPECT_THAT(Call(ClientOf(server_.address()).get()),
              StatusIs(absl::StatusCode::kUnavailable, "queue is full"));
}

TEST_F(ReplicasTest, TakeTurnsAndStandInForOneThatEnds) {
  std::atomic<int> here = 0, there = 0;
  Count(&here, &service_);
  Count(&there, &other_service_);
  const auto client = ClientOf(absl::StrCat(server_.address(), ",", other_server_.address()));
  ASSERT_NE(client, nullptr);
  for (int i = 0; i < 12'000 && (here == 0 || there == 0); ++i) {
    ASSERT_THAT(Call(client.get()), IsOk());
  }
  EXPECT_GT(here, 0);
  EXPECT_GT(there, 0);
  server_.server()->Shutdown();
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Call(client.get()), IsOk());
}

TEST_F(ReplicasTest, OneThatDoesNotServeIsLeftOutWhereHealthIsWatched) {
  std::atomic<int> here = 0, there = 0;
  Count(&here, &service_);
  Count(&there, &other_service_);
  server_.server()->GetHealthCheckService()->SetServingStatus(false);
  auto client = Client::Connect(absl::StrCat(server_.address(), ",", other_server_.address()),
                                {.timeout = kPatience, .watch_health = true});
  ASSERT_THAT(client, IsOk());
  for (int i = 0; i < 20; ++i) EXPECT_THAT(Call(client->get()), IsOk());
  EXPECT_EQ(here, 0);
  server_.server()->GetHealthCheckService()->SetServingStatus(true);
  for (int i = 0; i < 12'000 && here == 0; ++i) ASSERT_THAT(Call(client->get()), IsOk());
  EXPECT_GT(here, 0) << "it serves again";
}

TEST(TargetOf, LeavesOneAddressAloneAndLooksSeveralUp) {
  EXPECT_EQ(TargetOf("dns:///tilewire:8001").value(), "dns:///tilewire:8001");
  EXPECT_EQ(TargetOf("localhost:8001").value(), "localhost:8001");
  EXPECT_EQ(TargetOf("127.0.0.1:1,127.0.0.1:2").value(),
            "ipv6:[::ffff:127.0.0.1]:1,[::ffff:127.0.0.1]:2");
  EXPECT_EQ(TargetOf("[::1]:2,127.0.0.1:1,[::1]:2").value(), "ipv6:[::1]:2,[::ffff:127.0.0.1]:1");
  for (const char* bad : {"127.0.0.1:1,127.0.0.1", "a:b,127.0.0.1:1", ":1,127.0.0.1:1", ","}) {
    EXPECT_THAT(TargetOf(bad), StatusIs(absl::StatusCode::kInvalidArgument, "is not HOST:PORT"));
  }
  EXPECT_THAT(TargetOf("http://here:8001"),
              StatusIs(absl::StatusCode::kInvalidArgument, "is a URL, not HOST:PORT: leave"));
}

}  // namespace
}  // namespace tilewire::client
