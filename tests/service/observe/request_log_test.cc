// SPDX-License-Identifier: Apache-2.0
//
// Lines about requests, as text and as JSON.
#include "service/observe/request_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

#include "nlohmann/json.hpp"
#include "spdlog/spdlog.h"
#include "tests/support/captured_log.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class RequestLogTest : public ::testing::Test {
 protected:
  // Lines go to lines() from now on.
  void Log(LogForm form) {
    log_.reset();
    log_.emplace(form);
  }

  std::vector<std::string> lines() const { return log_->lines(); }

  static void End(RequestLog* log, const absl::Status& status, const std::string& model = "cats") {
    log->Ended({.method = "ModelInfer",
                .model = model,
                .status = &status,
                .origin =
                    [] {
                      return RequestOrigin{"ipv4:1.2.3.4:5", "a81f", "0af7"};
                    },
                .waited = absl::Milliseconds(1.5),
                .ran = absl::Milliseconds(2)});
  }

  std::optional<tilewire::testing::CapturedLog> log_;
};

TEST_F(RequestLogTest, ALineIsTextWithTheRequestsId) {
  Log(LogForm::kText);
  RequestLog log(absl::Seconds(10));
  End(&log, absl::InvalidArgumentError("no\nsuch input"));
  ASSERT_EQ(lines().size(), 1);
  EXPECT_THAT(lines()[0],
              HasSubstr("request ModelInfer cats id a81f from ipv4:1.2.3.4:5: INVALID_ARGUMENT "
                        "after 1.5 ms waiting and 2.0 ms running: no\\nsuch input"));
}

TEST_F(RequestLogTest, InJsonEachValueHasAKeyAndTheTextIsTheSame) {
  Log(LogForm::kJson);
  RequestLog log(absl::Seconds(10));
  const std::string hostile = "m\"},\n{\"level\":\"x\xff";
  End(&log, absl::InvalidArgumentError("no such input"), hostile);
  spdlog::info("loaded {}", hostile);
  ASSERT_EQ(lines().size(), 2);
  const auto line = nlohmann::ordered_json::parse(lines()[0]);
  std::vector<std::string> keys;
  for (const auto& [key, value] : line.items()) keys.push_back(key);
  EXPECT_THAT(keys, ElementsAre("time", "level", "log", "text", "method", "model", "peer",
                                "request_id", "trace_id", "code", "waited_ms", "ran_ms"));
  EXPECT_EQ(line["level"], "warning");
  EXPECT_EQ(line["request_id"], "a81f");
  EXPECT_EQ(line["trace_id"], "0af7");
  EXPECT_EQ(line["code"], "INVALID_ARGUMENT");
  EXPECT_EQ(line["waited_ms"], 1.5);
  EXPECT_THAT(line["text"].get<std::string>(), HasSubstr("id a81f from ipv4:1.2.3.4:5"));
  EXPECT_THAT(line["time"].get<std::string>(),
              ::testing::MatchesRegex("[0-9-]*T[0-9:]*\\.[0-9]*Z"));
  const auto other = nlohmann::json::parse(lines()[1]);
  EXPECT_EQ(other.size(), 4) << "no text forges a field";
  EXPECT_EQ(other["level"], "info");
}

TEST_F(RequestLogTest, WhoGetsALineIsTheOperatorsChoice) {
  const absl::Status ok, failed = absl::InternalError("x"), left = absl::CancelledError("x");
  const struct {
    AccessLog access;
    int lines;  // of one request each that is good, failed, left, and slow
  } cases[] = {{AccessLog::kBad, 2}, {AccessLog::kOff, 0}, {AccessLog::kAll, 4}};
  for (const auto& c : cases) {
    Log(LogForm::kText);
    RequestLog quick(absl::Seconds(10), c.access), slow(absl::Milliseconds(1), c.access);
    for (const absl::Status& status : {ok, failed, left}) End(&quick, status);
    End(&slow, ok);
    EXPECT_EQ(lines().size(), c.lines) << static_cast<int>(c.access);
    EXPECT_EQ(quick.Requests(absl::StatusCode::kInternal), 1) << "counted all the same";
  }
}

TEST_F(RequestLogTest, WhileLinesAreVerboseEachRequestGetsOne) {
  for (const AccessLog access : {AccessLog::kBad, AccessLog::kOff, AccessLog::kAll}) {
    Log(LogForm::kJson);
    RequestLog log(absl::Seconds(10), access);
    const absl::Status ok;
    spdlog::set_level(spdlog::level::debug);
    for (int i = 0; i < 30; ++i) End(&log, ok);
    ASSERT_EQ(lines().size(), 30) << static_cast<int>(access);
    EXPECT_EQ(nlohmann::json::parse(lines()[0])["level"],
              access == AccessLog::kAll ? "info" : "debug");
    spdlog::set_level(spdlog::level::info);
    End(&log, ok);
    EXPECT_EQ(lines().size(), access == AccessLog::kAll ? 31 : 30);
  }
}

TEST_F(RequestLogTest, OnlyWhereAllAreAskedForThereIsNoBoundPerSecond) {
  for (const AccessLog access : {AccessLog::kBad, AccessLog::kAll}) {
    Log(LogForm::kText);
    RequestLog log(absl::Seconds(10), access);
    for (int i = 0; i < 100; ++i) End(&log, absl::InternalError("x"));
    if (access == AccessLog::kAll) {
      EXPECT_EQ(lines().size(), 100);
    } else {
      EXPECT_LT(lines().size(), 50);
    }
  }
}

}  // namespace
}  // namespace tilewire::service
