// SPDX-License-Identifier: Apache-2.0
#include "service/observe/log_formatter.h"

#include <chrono>
#include <cstdlib>
#include <ctime>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "spdlog/details/log_msg.h"

namespace tilewire::service {
namespace {

std::string LineOf(const std::string& message) {
  const spdlog::details::log_msg msg("tilewire", spdlog::level::info, message);
  spdlog::memory_buf_t line;
  LogFormatter()->format(msg, line);
  return std::string(line.data(), line.size());
}

TEST(LogFormatterTest, AMessageIsOneLineOfText) {
  EXPECT_THAT(LineOf("model 'a \"b\" \\c': loaded"),
              ::testing::EndsWith("[tilewire] [info] model 'a \"b\" \\c': loaded\n"));
  const std::string forged = LineOf("node 'a\n[2026-01-01] [error] b\x1b[31m\r\x9b\xc3\xa9'");
  EXPECT_THAT(forged, ::testing::EndsWith(
                          "node 'a\\n[2026-01-01] [error] b\\x1b[31m\\r\\x9b\\xc3\\xa9'\n"));
  EXPECT_EQ(forged.find('\n'), forged.size() - 1);
}

TEST(LogFormatterTest, TimesAreInUtcAndSaySo) {
  setenv("TZ", "Asia/Tokyo", 1);
  tzset();
  const spdlog::details::log_msg msg(std::chrono::system_clock::from_time_t(1'700'000'000), {},
                                     "tilewire", spdlog::level::warn, "text");
  spdlog::memory_buf_t line;
  LogFormatter()->format(msg, line);
  unsetenv("TZ");
  tzset();
  EXPECT_EQ(std::string(line.data(), line.size()),
            "[2023-11-14T22:13:20.000Z] [tilewire] [warning] text\n");
}

}  // namespace
}  // namespace tilewire::service
