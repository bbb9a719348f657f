// SPDX-License-Identifier: Apache-2.0
#include "service/memory_plan.h"

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::service {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr MemoryUse kUsed = {.resident = 10 * kMiB, .mapped = 60 * kMiB};

MemoryPlan PlanFor(int64_t megabytes, const MemoryWishes& wishes = {}, int64_t models = 0) {
  return PlanMemory({{megabytes * kMiB, "a group", false}}, {.used = kUsed, .models = models},
                    wishes);
}

// All that is bounded by default, with models that take what they may.
int64_t Sum(const MemoryPlan& plan) {
  return kUsed.resident + plan.transport * 6 / 5 + 24 * kMiB + plan.code + plan.idle_answers +
         plan.shared;
}

TEST(MemoryPlanTest, AllBoundsTogetherFitIntoWhatIsGranted) {
  for (int64_t megabytes : {96, 128, 256, 512, 1024, 2048, 24'000, 500'000}) {
    SCOPED_TRACE(megabytes);
    const MemoryPlan plan = PlanFor(megabytes);
    EXPECT_LT(Sum(plan), megabytes * kMiB);
    EXPECT_LE(plan.work, plan.shared);
    EXPECT_LE(plan.work, megabytes * kMiB / 2);
    EXPECT_GE(plan.transport, 2 * plan.message);
    EXPECT_GT(plan.message, 0);
    EXPECT_EQ(plan.warning, "");
  }
}

TEST(MemoryPlanTest, PlentyGivesTheUsualBoundsAndLittleGivesLess) {
  const MemoryPlan large = PlanFor(24'000);
  EXPECT_EQ(large.message, 64 * kMiB);
  EXPECT_EQ(large.transport, 512 * kMiB);
  EXPECT_EQ(large.code, 64 * kMiB);
  EXPECT_EQ(large.work, 12'000 * kMiB);
  const MemoryPlan small = PlanFor(256);
  EXPECT_EQ(small.code, 16 * kMiB);
  constexpr double kLeft = 256 - 10 - 16 - 16 - 8 - 16;
  EXPECT_NEAR(small.transport, (kLeft / 3 - 24) / 1.2 * kMiB, 10);
  EXPECT_EQ(small.message, small.transport / 2);
  EXPECT_NEAR(small.shared, kLeft / 3 * 2 * kMiB, 10);
  EXPECT_EQ(small.work, small.shared);
  EXPECT_EQ(small.heaps, 1);
  EXPECT_EQ(PlanFor(512).heaps, 1);
  EXPECT_EQ(PlanFor(1024).heaps, 2);
  EXPECT_GT(large.heaps, 32);
}

TEST(MemoryPlanTest, WhatIsWishedForIsGiven) {
  const MemoryPlan plan =
      PlanFor(512, {.message = 10 * kMiB, .transport = 50 * kMiB, .work = 90 * kMiB, .code = 0});
  EXPECT_EQ(plan.message, 10 * kMiB);
  EXPECT_EQ(plan.transport, 50 * kMiB);
  EXPECT_EQ(plan.work, 90 * kMiB);
  EXPECT_TRUE(plan.work_is_fixed);
  EXPECT_EQ(plan.code, 0);
  EXPECT_GT(plan.shared, PlanFor(512).shared) << "less for connections leaves more for models";
  EXPECT_EQ(PlanFor(512, {.message = 300 * kMiB}).transport, 600 * kMiB) << "two messages";
}

TEST(MemoryPlanTest, WishesThatDoNotFitAreSaidSo) {
  EXPECT_THAT(PlanFor(512, {.work = 400 * kMiB}).warning,
              HasSubstr("--max_work_mb=400 and --transport_mb=86 together exceed the 512 MB that "
                        "a group grants"));
}

TEST(MemoryPlanTest, WhatHoldsNoModelIsRefusedWithWhatWouldDo) {
  EXPECT_EQ(PlanFor(96).refusal, "");
  EXPECT_THAT(PlanFor(512, {.transport = 500 * kMiB}).refusal,
              HasSubstr("the 512 MB that a group grants hold the server and its connections "
                        "(--transport_mb=500) but no model: at least "));
  const std::string refusal = PlanFor(32).refusal;
  int64_t needed = 33;
  while (!PlanFor(needed).refusal.empty()) ++needed;
  EXPECT_THAT(refusal, HasSubstr(absl::StrCat("at least ", needed, " MB are needed")));
}

TEST(MemoryPlanTest, ConnectionsAreNotGivenMoreThanIsWishedFor) {
  EXPECT_EQ(PlanFor(512, {.message = 40 * kMiB, .transport = 50 * kMiB}).transport, 50 * kMiB);
}

TEST(MemoryPlanTest, TheLimitThatLeavesLeastBinds) {
  const MemoryLimit group = {1024 * kMiB, "a group", false}, own = {900 * kMiB, "ulimit", true};
  const MemoryNeeds needs = {.used = kUsed, .threads = 20, .stack_bytes = kMiB};
  EXPECT_EQ(PlanMemory({group, own}, needs, {}).limit.name, "ulimit");
  const MemoryLimit wide = {1080 * kMiB, "ulimit", true};
  EXPECT_EQ(PlanMemory({group, wide}, {.used = kUsed}, {}).limit.name, "a group");
  EXPECT_EQ(PlanMemory({group, wide}, needs, {}).limit.name, "ulimit") << "stacks count";
}

TEST(MemoryPlanTest, LargeModelsLeaveConnectionsLess) {
  const MemoryPlan without = PlanFor(256), with = PlanFor(256, {}, 130 * kMiB);
  EXPECT_LT(with.transport, without.transport);
  EXPECT_LT(with.message, without.message);
  EXPECT_GT(with.shared, 130 * kMiB) << "requests get some, too";
  EXPECT_EQ(PlanFor(24'000, {}, 130 * kMiB).transport, 512 * kMiB);
  EXPECT_EQ(PlanFor(256, {}, 500 * kMiB).transport, 16 * kMiB);
}

}  // namespace
}  // namespace tilewire::service
