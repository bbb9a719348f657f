// SPDX-License-Identifier: Apache-2.0
#include "service/observe/trace_context.h"

#include <gtest/gtest.h>

#include <string>

#include "absl/types/span.h"

namespace tilewire::service {
namespace {

constexpr char kTrace[] = "0af7651916cd43dd8448eb211c80319c";
constexpr char kParent[] = "b7ad6b7169203331";

std::string Header(const std::string& version, const std::string& trace, const std::string& parent,
                   const std::string& flags) {
  return version + "-" + trace + "-" + parent + "-" + flags;
}

TEST(TraceContextTest, ReadsTheHeaderOfThisAndLaterVersions) {
  const std::string header = Header("00", kTrace, kParent, "01");
  const TraceContext one = ParseTraceParent(header);
  EXPECT_EQ(one.trace_id, kTrace);
  EXPECT_EQ(one.parent_id, kParent);
  EXPECT_TRUE(one.sampled);
  EXPECT_FALSE(ParseTraceParent(Header("00", kTrace, kParent, "02")).sampled);
  EXPECT_EQ(ParseTraceParent(Header("01", kTrace, kParent, "0b") + "-more").trace_id, kTrace);
}

TEST(TraceContextTest, ReadsTheBytesOfDigits) {
  SpanId id = {};
  ReadHexDigits(kParent, absl::MakeSpan(id));
  EXPECT_EQ(id, (SpanId{0xb7, 0xad, 0x6b, 0x71, 0x69, 0x20, 0x33, 0x31}));
  ReadHexDigits("", absl::MakeSpan(id));
  EXPECT_EQ(id[0], 0xb7) << "without digits nothing is read";
}

TEST(TraceContextTest, IdsThatAreMadeDifferAndAreNotNone) {
  constexpr int kThreads = 4, kEach = 5000;
  std::vector<std::vector<TraceId>> made(kThreads);
  std::vector<std::thread> threads;
  for (auto& mine : made) {
    threads.emplace_back([&mine] {
      for (int i = 0; i < kEach; ++i) mine.push_back(MadeTraceId());
    });
  }
  for (std::thread& thread : threads) thread.join();
  std::set<TraceId> all = {TraceId()};
  for (const auto& mine : made) all.insert(mine.begin(), mine.end());
  EXPECT_EQ(all.size(), 1 + kThreads * kEach);
}

TEST(TraceContextTest, AHeaderThatIsNoneIsNoTrace) {
  const std::string zeros(32, '0');
  for (const std::string& header :
       {std::string(), std::string("00"), Header("ff", kTrace, kParent, "01"),
        Header("00", kTrace, kParent, "01") + "-more", Header("00", zeros, kParent, "01"),
        Header("00", kTrace, zeros.substr(16), "01"), Header("00", kTrace, kParent, "1"),
        Header("00", kTrace, kParent, "zz"), Header("0", kTrace, kParent, "01"),
        Header("00", std::string(kTrace) + "a", kParent, "01"),
        Header("00", "0AF7651916CD43DD8448EB211C80319C", kParent, "01"), std::string(1000, '-'),
        std::string("\0\xff\n", 3)}) {
    EXPECT_TRUE(ParseTraceParent(header).trace_id.empty()) << header;
  }
}

}  // namespace
}  // namespace tilewire::service
