// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/memory_plan.h"

#include <random>
#include <vector>

#include "engine/base/checked_math.h"
#include "gtest/gtest.h"

namespace tilewire::lowering {
namespace {

using runtime::PlanBuffer;

TEST(MemoryPlanTest, BuffersAliveTogetherNeverOverlap) {
  std::mt19937 random(7);
  for (int round = 0; round < 50; ++round) {
    std::vector<PlanBuffer> buffers(40);
    int64_t sum = 0;
    for (PlanBuffer& buffer : buffers) {
      buffer.bytes = random() % 5000;
      buffer.first = static_cast<int>(random() % 30) - 1;
      buffer.last = buffer.first + static_cast<int>(random() % 6);
      sum += RoundUp(buffer.bytes, 64);
    }
    const auto arena = PlaceBuffers(absl::MakeSpan(buffers), 1 << 20);
    ASSERT_TRUE(arena.ok());
    EXPECT_LE(*arena, sum);
    for (const PlanBuffer& a : buffers) {
      EXPECT_EQ(a.offset % 64, 0);
      EXPECT_LE(a.offset + a.bytes, *arena);
      for (const PlanBuffer& b : buffers) {
        if (&a == &b || a.last < b.first || b.last < a.first || a.bytes == 0 || b.bytes == 0)
          continue;
        EXPECT_TRUE(a.offset + a.bytes <= b.offset || b.offset + b.bytes <= a.offset);
      }
    }
  }
}

TEST(MemoryPlanTest, AChainNeedsTwoBuffersAtATime) {
  std::vector<PlanBuffer> chain;
  for (int i = 0; i < 10; ++i) chain.push_back({.bytes = 640, .first = i - 1, .last = i});
  EXPECT_EQ(PlaceBuffers(absl::MakeSpan(chain), 1 << 20).value(), 2 * 640);
}

TEST(MemoryPlanTest, PartsLieInWhatTheyArePartsOfAndKeepItAlive) {
  // Two parts, the second of which has a part itself, beside a buffer that lives before the whole.
  std::vector<PlanBuffer> buffers = {
      {.bytes = 128, .first = 0, .last = 5, .part_of = 2, .part_offset = 64},
      {.bytes = 128, .first = 1, .last = 2, .part_of = 3},
      {.bytes = 192, .first = 2, .last = 3, .part_of = 3, .part_offset = 128},
      {.bytes = 320, .first = 4, .last = 4},
      {.bytes = 256, .first = 0, .last = 1}};
  EXPECT_EQ(PlaceBuffers(absl::MakeSpan(buffers), 1 << 20).value(), 320 + 256);
  const int64_t whole = buffers[3].offset;
  EXPECT_EQ(buffers[0].offset, whole + 192);
  EXPECT_EQ(buffers[1].offset, whole);
  EXPECT_EQ(buffers[2].offset, whole + 128);
}

TEST(MemoryPlanTest, TooLargeAnArenaIsRefused) {
  std::vector<PlanBuffer> one = {{.bytes = 1001}}, two = {{.bytes = 600}, {.bytes = 600}};
  EXPECT_EQ(PlaceBuffers(absl::MakeSpan(one), 1000).status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(PlaceBuffers(absl::MakeSpan(two), 1000).status().code(),
            absl::StatusCode::kResourceExhausted);
}

}  // namespace
}  // namespace tilewire::lowering
