// SPDX-License-Identifier: Apache-2.0
#include "service/observe/log_formatter.h"

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

}  // namespace
}  // namespace tilewire::service
