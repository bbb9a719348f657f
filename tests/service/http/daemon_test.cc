// SPDX-License-Identifier: Apache-2.0
#include "service/http/daemon.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "tests/service/http/raw_request.h"

namespace tilewire::service {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tilewire::testing::AnswerTo;
using tilewire::testing::Ask;
using tilewire::testing::RawConnection;

class DaemonTest : public ::testing::Test {
 protected:
  void Start(HttpBounds bounds = {}) {
    auto daemon = HttpDaemon::Start(
        "127.0.0.1", 0,
        [](absl::string_view path) {
          if (path == "/greedy") throw std::bad_alloc();
          return HttpAnswer{.status = path == "/missing" ? 404 : 200,
                            .body = absl::StrCat("path ", path, "\n"),
                            .headers = {{"X-Further", "yes"}}};
        },
        bounds);
    ASSERT_TRUE(daemon.ok()) << daemon.status();
    daemon_ = *std::move(daemon);
    port_ = daemon_->port();
  }

  std::unique_ptr<HttpDaemon> daemon_;
  int port_ = 0;
};

TEST_F(DaemonTest, AnswersWithTheHandlersWords) {
  Start();
  const std::string answer = Ask(port_, "/a/b?query=1");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 OK\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Further: yes\r\n"));
  EXPECT_THAT(answer, HasSubstr("\r\nX-Content-Type-Options: nosniff\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\npath /a/b\n"));
  EXPECT_THAT(Ask(port_, "/missing"), StartsWith("HTTP/1.1 404 "));
}

TEST_F(DaemonTest, AHeadHasNoBody) {
  Start();
  const std::string answer = Ask(port_, "/a", "", "HEAD");
  EXPECT_THAT(answer, HasSubstr("\r\nContent-Length: 8\r\n"));
  EXPECT_THAT(answer, EndsWith("\r\n\r\n"));
}

TEST_F(DaemonTest, RefusesOtherMethodsAndBodies) {
  Start();
  struct Case {
    const char *method, *headers, *status;
  };
  for (const auto& [method, headers, status] : std::vector<Case>{
           {"POST", "Content-Length: 5\r\n", "405"},
           {"POST", "Transfer-Encoding: chunked\r\n", "405"},
           {"PUT", "", "405"},
           {"DELETE", "", "405"},
           {"OPTIONS", "", "405"},
           {"GET", "Content-Length: 5\r\n", "400"},
           {"GET", "Transfer-Encoding: chunked\r\n", "400"},
           {"GET", "Content-Length: 0\r\n", "200"},
       }) {
    EXPECT_THAT(Ask(port_, "/a", headers, method), StartsWith(absl::StrCat("HTTP/1.1 ", status)))
        << method << " " << headers;
  }
  // The bytes of a body are not taken for the next request.
  const std::string smuggled =
      AnswerTo(port_,
               "GET /a HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40\r\n\r\n"
               "GET /smuggled HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_THAT(smuggled, Not(HasSubstr("smuggled")));
}

TEST_F(DaemonTest, AnswersPipelinedRequestsInOrder) {
  Start();
  const std::string head = " HTTP/1.1\r\nHost: localhost\r\n";
  const std::string answers = AnswerTo(
      port_, absl::StrCat("GET /1", head, "\r\nGET /2", head, "Connection: close\r\n\r\n"));
  const size_t first = answers.find("path /1"), second = answers.find("path /2");
  EXPECT_NE(second, std::string::npos) << answers;
  EXPECT_LT(first, second);
}

TEST_F(DaemonTest, RefusesLargeHeaders) {
  Start({.header_bytes = 4096});
  const std::string large(100'000, 'a');
  EXPECT_THAT(Ask(port_, "/a", absl::StrCat("X-Large: ", large, "\r\n")),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(Ask(port_, absl::StrCat("/", large)), StartsWith("HTTP/1.1 414 "));
  EXPECT_THAT(Ask(port_, "/a"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(DaemonTest, ARequestThatIsNotCompletedInItsTimeIsEnded) {
  Start({.time = absl::Milliseconds(300)});
  EXPECT_EQ(AnswerTo(port_, "GET /a HT"), "");
  EXPECT_EQ(AnswerTo(port_, ""), "") << "nor one that says nothing";
  // Nor one that says a little all the time.
  RawConnection slow(port_);
  int sent = 0;
  while (slow.Send("G") && sent < 10'000) {
    ++sent;
    absl::SleepFor(absl::Milliseconds(5));
  }
  EXPECT_LT(sent, 10'000);
  // Others are served; a machine that stalls may be late with a whole request, too.
  std::string answer;
  for (int i = 0; i < 100 && answer.empty(); ++i) answer = Ask(port_, "/a");
  EXPECT_THAT(answer, StartsWith("HTTP/1.1 200 "));
}

TEST_F(DaemonTest, TheConnectionThatWaitsLongestMakesWay) {
  Start({.connections = 4, .time = absl::Hours(1)});
  std::vector<std::unique_ptr<RawConnection>> idle;
  for (int i = 0; i < 20; ++i) {
    idle.push_back(std::make_unique<RawConnection>(port_));
    idle.back()->Send("GET /");
  }
  EXPECT_THAT(Ask(port_, "/a"), StartsWith("HTTP/1.1 200 "));
  EXPECT_EQ(idle.front()->ReadAll(), "") << "it is closed";
}

TEST_F(DaemonTest, AHandlerWithoutMemoryEndsTheConnectionAlone) {
  Start();
  EXPECT_EQ(Ask(port_, "/greedy"), "");
  EXPECT_THAT(Ask(port_, "/a"), StartsWith("HTTP/1.1 200 "));
}

TEST_F(DaemonTest, APageOfAnotherSiteGetsNothing) {
  Start();
  EXPECT_THAT(Ask(port_, "/a", "Origin: http://elsewhere.example\r\n"),
              StartsWith("HTTP/1.1 403 "));
  EXPECT_THAT(AnswerTo(port_, "GET /a HTTP/1.1\r\nHost: elsewhere.example\r\n\r\n"),
              StartsWith("HTTP/1.1 403 "));
}

TEST_F(DaemonTest, TheEndClosesConnectionsAndThePort) {
  Start();
  RawConnection open(port_);
  EXPECT_THAT(Ask(port_, "/a"), StartsWith("HTTP/1.1 200 "));
  daemon_ = nullptr;
  EXPECT_EQ(open.ReadAll(), "");
  EXPECT_TRUE(
      HttpDaemon::Start("127.0.0.1", port_, [](absl::string_view) { return HttpAnswer(); }).ok());
}

TEST_F(DaemonTest, APortInUseIsUnavailable) {
  Start();
  const auto second =
      HttpDaemon::Start("127.0.0.1", port_, [](absl::string_view) { return HttpAnswer(); });
  EXPECT_EQ(second.status().code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(second.status().message(), HasSubstr(absl::StrCat(port_)));
}

}  // namespace
}  // namespace tilewire::service
