// SPDX-License-Identifier: Apache-2.0
//
// The parts that lowering and execution stand on: layouts, the memory plan, values made once.
#include <atomic>
#include <random>
#include <thread>

#include "engine/lowering/memory_plan.h"
#include "engine/runtime/tensor_layout.h"
#include "engine/threading/single_flight_cache.h"
#include "gtest/gtest.h"

namespace tilewire::runtime {
namespace {

using lowering::PlaceBuffers;

MemoryDesc Desc(Dims dims, FormatTag tag) {
  return MemoryDesc::Create(dims, DataType::kF32, tag).value();
}

TEST(LayoutsTest, RowMajorIsAQuestionOfMemoryNotOfNames) {
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 3, 4, 5}, FormatTag::k_nchw)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 3, 4, 5}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 3, 1, 1}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 1, 4, 5}, FormatTag::k_nhwc)));
  EXPECT_TRUE(IsRowMajorInMemory(Desc({2, 32, 1, 1}, FormatTag::k_nChw16c)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 32, 2, 1}, FormatTag::k_nChw16c)));
  EXPECT_FALSE(IsRowMajorInMemory(Desc({2, 31, 1, 1}, FormatTag::k_nChw16c)));
}

TEST(LayoutsTest, SameMemory) {
  const MemoryDesc nchw = Desc({2, 32, 1, 1}, FormatTag::k_nchw),
                   blocked = Desc({2, 32, 1, 1}, FormatTag::k_nChw16c);
  EXPECT_TRUE(SameMemory(nchw, blocked));
  EXPECT_FALSE(SameMemory(Desc({2, 32, 3, 1}, FormatTag::k_nchw),
                          Desc({2, 32, 3, 1}, FormatTag::k_nChw16c)));
}

TEST(LayoutsTest, LayoutLikeKeepsTheTag) {
  const auto like = LayoutLike(Desc({2, 32, 3, 3}, FormatTag::k_nChw16c), {2, 20, 3, 3});
  ASSERT_TRUE(like.ok());
  EXPECT_EQ(*like, Desc({2, 20, 3, 3}, FormatTag::k_nChw16c));
}

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

TEST(SingleFlightCacheTest, ConcurrentCallersShareOneValue) {
  threading::SingleFlightCache<int> map;
  std::atomic<int> made = 0;
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      const auto value = map.GetOrMake("key", [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
        return std::make_shared<const int>(++made);
      });
      EXPECT_TRUE(value.ok() && **value == 1);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
}

TEST(SingleFlightCacheTest, AKnownKeyDoesNotWaitForAnother) {
  threading::SingleFlightCache<int> map;
  const auto make = [] {
    return absl::StatusOr<std::shared_ptr<const int>>(std::make_shared<const int>(1));
  };
  ASSERT_TRUE(map.GetOrMake("known", make).ok());
  threading::Notification started, release;
  std::thread slow([&] {
    (void)map.GetOrMake("slow", [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
      started.Notify();
      release.WaitForNotification();
      return absl::UnavailableError("slow");
    });
  });
  started.WaitForNotification();
  EXPECT_TRUE(map.GetOrMake("known", make).ok());
  release.Notify();
  slow.join();
}

TEST(SingleFlightCacheTest, FailuresLeaveNothingAndTheOldestGoes) {
  threading::SingleFlightCache<int> map({.values = 2});
  EXPECT_EQ(
      map.GetOrMake(
             "bad",
             [] { return absl::StatusOr<std::shared_ptr<const int>>(absl::DataLossError("bad")); })
          .status(),
      absl::DataLossError("bad"));
  EXPECT_EQ(map.size(), 0u);
  int made = 0;
  const auto make = [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
    return std::make_shared<const int>(++made);
  };
  for (const char* key : {"a", "b", "a", "c"}) EXPECT_TRUE(map.GetOrMake(key, make).ok());
  EXPECT_EQ(map.size(), 2u);
  EXPECT_EQ(*map.GetOrMake("a", make).value(), 1);  // was used after b
  EXPECT_EQ(*map.GetOrMake("b", make).value(), 4);
}

TEST(SingleFlightCacheTest, BytesStayWithinTheirBoundAndTheLastValueStays) {
  threading::SingleFlightCache<int> map(
      {.bytes = 10, .bytes_of = [](const int& value) { return int64_t{value}; }});
  const auto get = [&](const std::string& key, int bytes) {
    return *map.GetOrMake(key,
                          [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
                            return std::make_shared<const int>(bytes);
                          })
                .value();
  };
  for (const char* key : {"a", "b", "c"}) get(key, 3);
  EXPECT_EQ(map.bytes(), 9);
  EXPECT_EQ(get("a", -1), 3);  // was kept, and is now younger than b
  get("d", 4);
  EXPECT_EQ(map.bytes(), 10);
  EXPECT_EQ(get("b", 2), 2);  // had gone; c goes for it
  EXPECT_EQ(map.bytes(), 9);
  get("large", 50);
  EXPECT_EQ(map.size(), 1u);
  EXPECT_EQ(map.bytes(), 50);
}

}  // namespace
}  // namespace tilewire::runtime
