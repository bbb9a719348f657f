// SPDX-License-Identifier: Apache-2.0
//
// Stories of slow requests, made of records with given times.
#include "service/observe/slow_requests.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "service/observe/cpu_throttling.h"

namespace tilewire::service {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr int64_t kMs = 1'000'000, kMinute = 60'000 * kMs;
constexpr int64_t kBegin = 1'000'000 * kMinute;  // a whole minute since 1970
constexpr uint32_t kCats = 1, kVgg = 2;

std::string NameOf(uint32_t model) {
  return model == kCats ? "cats" : model == kVgg ? "vgg" : "other methods";
}

// A request of `model` that came `at_ms` after kBegin, waited and ran.
FlightRecord Ran(uint32_t model, int64_t at_ms, int64_t waited_ms, int64_t ran_ms) {
  FlightRecord record;
  record.arrival_ns = kBegin + at_ms * kMs;
  record.queue_ns = waited_ms * kMs;
  record.run_ns = ran_ms * kMs;
  record.plan_key = 10 + model;
  record.model = model;
  record.flags = FlightRecord::kIsInference;
  return record;
}

class SlowRequestsTest : public ::testing::Test {
 protected:
  void Add(const FlightRecord& record, absl::string_view id = "") { recorder_.Add(record, id); }

  // `minutes` after kBegin.
  void Look(int64_t minutes = 1) {
    now_ns_ = std::max(now_ns_ + SlowRequests::kBetweenLooksNs, kBegin + minutes * kMinute);
    slow_.Look(now_ns_);
  }

  std::vector<SlowRequest> Find(uint32_t model, int64_t since_ns = 0, size_t most = 1000) const {
    return slow_.Find([model](uint32_t number) { return number == model; }, since_ns, most);
  }
  std::vector<int64_t> TotalsMs(uint32_t model, int64_t since_ns = 0, size_t most = 1000) const {
    std::vector<int64_t> totals;
    for (const SlowRequest& request : Find(model, since_ns, most))
      totals.push_back(request.record.TotalNs() / kMs);
    return totals;
  }
  std::string Words(const SlowRequest& request) const { return StoryText(request, NameOf); }

  FlightRecorder recorder_;
  SlowRequests slow_{&recorder_, "/nowhere"};
  int64_t now_ns_ = 0;
};

TEST_F(SlowRequestsTest, TheEightSlowestOfEachModelAndMinuteAreKept) {
  for (const int64_t ms : {5, 1, 12, 3, 9, 7, 2, 11, 4, 10, 6, 8}) Add(Ran(kCats, ms, 0, ms));
  Add(Ran(kVgg, 0, 0, 1));
  Add(Ran(kCats, 60'000, 0, 2));  // in the next minute
  Look();
  EXPECT_THAT(TotalsMs(kCats), ElementsAre(12, 11, 10, 9, 8, 7, 6, 5, 2));
  EXPECT_THAT(TotalsMs(kVgg), ElementsAre(1));
  EXPECT_THAT(TotalsMs(kCats, kBegin + kMinute), ElementsAre(2)) << "since then";
  EXPECT_THAT(TotalsMs(kCats, 0, 3), ElementsAre(12, 11, 10));

  Add(Ran(kCats, 100, 0, 20));  // one that is told late
  Look();
  EXPECT_THAT(TotalsMs(kCats), ElementsAre(20, 12, 11, 10, 9, 8, 7, 6, 2));
}

TEST_F(SlowRequestsTest, AnHourLaterTheyAreForgotten) {
  Add(Ran(kCats, 0, 0, 5));
  Look(59);
  EXPECT_EQ(Find(kCats).size(), 1);
  Look(60);
  EXPECT_TRUE(Find(kCats).empty());
}

TEST_F(SlowRequestsTest, TellWhatRanWhileARequestWaitedAndWhileItRan) {
  Add(Ran(kVgg, 0, 0, 100));             // until 100: 50 ms of it while the request waits
  Add(Ran(kVgg, 50, 60, 100));           // from 110 to 210
  Add(Ran(kCats, 40, 0, 30));            // from 40 to 70
  Add(Ran(kVgg, 230, 0, 40));            // from 230 to 270: beside its run
  Add(Ran(kVgg, 500, 0, 40));            // later
  Add(Ran(kCats, 50, 190, 10), "a81f");  // from 240 to 250
  Look();
  const SlowRequest slowest = Find(kCats).front();
  EXPECT_EQ(TextOf(slowest.id), "a81f");
  ASSERT_EQ(slowest.ahead_count, 2);
  EXPECT_EQ(slowest.ahead[0].model, kVgg);
  EXPECT_EQ(slowest.ahead[0].requests, 3);
  EXPECT_EQ(slowest.ahead[0].run_ns, (50 + 100 + 10) * kMs);
  EXPECT_EQ(slowest.ahead[1].model, kCats);
  EXPECT_EQ(slowest.ahead[1].requests, 1);
  EXPECT_EQ(slowest.ahead[1].run_ns, 20 * kMs);
  EXPECT_EQ(slowest.beside, 1);
  EXPECT_THAT(Words(slowest),
              HasSubstr("190 ms waiting while these ran: 3 requests of vgg (160 ms), 1 request of "
                        "cats (20 ms)"));
  EXPECT_THAT(Words(slowest), Not(HasSubstr("running"))) << "not worth a word";
}

TEST_F(SlowRequestsTest, ARunIsHeldAgainstTheUsualOneOfItsPlan) {
  Add(Ran(kCats, 0, 0, 9));
  Look();
  EXPECT_EQ(Find(kCats)[0].usual_ns, 0);
  EXPECT_THAT(Words(Find(kCats)[0]), HasSubstr("the first of its shape"));
  for (int i = 1; i <= 40; ++i) Add(Ran(kCats, 10 * i, 0, i % 2 == 0 ? 5 : 7));
  FlightRecord failed = Ran(kCats, 600, 0, 1000);
  failed.code = 4;
  Add(failed);
  Add(Ran(kCats, 700, 0, 35));
  Look();
  const SlowRequest slowest = Find(kCats)[1];
  EXPECT_EQ(slowest.record.run_ns, 35 * kMs);
  EXPECT_GE(slowest.usual_ns, 5 * kMs);
  EXPECT_LE(slowest.usual_ns, 7 * kMs) << "what failed does not count";
  EXPECT_THAT(Words(slowest), AllOf(HasSubstr("35 ms running"), HasSubstr("times the usual")));
  EXPECT_THAT(Words(Find(kCats)[2]), Not(HasSubstr("times the usual")));
}

TEST_F(SlowRequestsTest, WordsNameTheStagesThatAreWorthIt) {
  struct Case {
    const char* why;
    void (*change)(SlowRequest*);
    const char* words;
  };
  const Case cases[] = {
      {"parked", [](SlowRequest* r) { r->record.flags |= FlightRecord::kWaitedForPlan; },
       "waiting for the plan of its shape, which another request made"},
      {"made the plan",
       [](SlowRequest* r) {
         r->record.flags |= FlightRecord::kMadePlan;
         r->record.plan_ns = 120 * kMs;
       },
       "120 ms of it for making the plan"},
      {"serial", [](SlowRequest* r) { r->record.flags |= FlightRecord::kRanSerially; },
       "on one core"},
      {"beside", [](SlowRequest* r) { r->beside = 2; }, "beside 2 requests"},
      {"throttled", [](SlowRequest* r) { r->throttled_ns = 30 * kMs; },
       "held the process back for up to 30 ms of core time"},
      {"not read", [](SlowRequest* r) { r->record.write_ns = 2100 * kMs; },
       "2100 ms until the client had taken the answer"},
      {"large", [](SlowRequest* r) { r->record.decode_ns = 50 * kMs; },
       "50 ms reading the request"},
  };
  for (const Case& c : cases) {
    SlowRequest request{.record = Ran(kCats, 0, 50, 50)};
    EXPECT_THAT(Words(request), Not(HasSubstr(c.words))) << c.why;
    c.change(&request);
    EXPECT_THAT(Words(request), HasSubstr(c.words)) << c.why;
  }
}

TEST_F(SlowRequestsTest, ManyModelsAheadAreTheEightThatRanLongest) {
  for (uint32_t model = 1; model <= 20; ++model) Add(Ran(model, 0, 0, model));
  Add(Ran(99, 0, 100, 1));
  Look();
  const SlowRequest slowest = Find(99).front();
  ASSERT_EQ(slowest.ahead_count, SlowRequest::kMostAhead);
  EXPECT_EQ(slowest.ahead[0].model, 20);
  EXPECT_EQ(slowest.ahead[7].model, 13);
  EXPECT_LE(sizeof(SlowRequest), 2048) << "what a story may take";
}

TEST_F(SlowRequestsTest, RecordsThatWereOverwrittenAreCounted) {
  for (uint64_t i = 0; i < FlightRing::kRecords + 7; ++i) Add(Ran(kCats, 0, 0, 1));
  Look();
  EXPECT_EQ(slow_.missed(), 7);
}

// A folder with a control group's files as Linux has them.
class CpuThrottlingTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    const bool is_v2 = GetParam() == 2;
    Write("proc/self/cgroup", is_v2 ? "0::/a/b\n" : "4:cpu,cpuacct:/a/b\n");
    mount_ = is_v2 ? "sys/fs/cgroup" : "sys/fs/cgroup/cpu";
  }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  void Throttle(const std::string& group, int64_t ms) {
    const std::string line = GetParam() == 2 ? absl::StrCat("throttled_usec ", ms * 1000)
                                             : absl::StrCat("throttled_time ", ms * kMs);
    Write(absl::StrCat(mount_, group, "/cpu.stat"), absl::StrCat("nr_periods 7\n", line, "\n"));
  }

  const std::filesystem::path root_ =
      std::filesystem::path(::testing::TempDir()) / absl::StrCat("throttled", GetParam());
  std::string mount_;
};

TEST_P(CpuThrottlingTest, TellsWhatTheGroupThatWasHeldBackMostLost) {
  Throttle("/a/b", 1000);
  Throttle("/a", 5000);
  CpuThrottling throttling(root_);
  constexpr int64_t kLook = CpuThrottling::kBetweenLooksNs;
  throttling.Look(kLook);
  EXPECT_EQ(throttling.total_ns(), 0) << "what was before the start is not counted";
  Throttle("/a/b", 1030);
  Throttle("/a", 5010);
  throttling.Look(2 * kLook - 1);
  EXPECT_EQ(throttling.total_ns(), 0) << "it is not time for a look";
  throttling.Look(2 * kLook);
  EXPECT_EQ(throttling.total_ns(), 30 * kMs);
  Throttle("/a", 5110);
  throttling.Look(3 * kLook);
  EXPECT_EQ(throttling.total_ns(), 130 * kMs);
  EXPECT_EQ(throttling.Between(kLook + 1, kLook + 2), 30 * kMs);
  EXPECT_EQ(throttling.Between(kLook + 1, 3 * kLook), 130 * kMs);
  EXPECT_EQ(throttling.Between(3 * kLook, 4 * kLook), 0);
  EXPECT_EQ(throttling.Between(0, kLook), 0);
}

INSTANTIATE_TEST_SUITE_P(Versions, CpuThrottlingTest, ::testing::Values(1, 2));

TEST(CpuThrottlingWithoutGroups, IsNothing) {
  CpuThrottling throttling("/nowhere");
  throttling.Look(kMs);
  EXPECT_EQ(throttling.total_ns(), 0);
  EXPECT_EQ(throttling.Between(0, kMs), 0);
}

}  // namespace
}  // namespace tilewire::service
