// SPDX-License-Identifier: Apache-2.0
#include "engine/cache/primitive_cache.h"

#include <barrier>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

constexpr int64_t kMegabyte = int64_t{1} << 20;

MemoryDesc Plain(Dims dims) {
  return MemoryDesc::CreatePattern(std::move(dims), DataType::kF32, "ab").value();
}

// dst = alpha * src + 1
OpDesc Linear(float alpha) {
  EltwiseDesc desc;
  desc.op = {.function = EltwiseAlgorithm::kLinear, .alpha = alpha, .beta = 1};
  desc.src = desc.dst = Plain({2, 16});
  return desc;
}

OpDesc Invalid() {
  EltwiseDesc desc;
  desc.src = Plain({2, 16});
  desc.dst = Plain({2, 17});
  return desc;
}

Attributes UserMode() {
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  return attributes;
}

absl::StatusOr<PrimitiveCache::Found> Get(PrimitiveCache& cache, const OpDesc& desc) {
  return cache.GetOrCreate(desc, UserMode(), {});
}

PrimitiveCache::Found GetOrDie(PrimitiveCache& cache, const OpDesc& desc) {
  absl::StatusOr<PrimitiveCache::Found> found = Get(cache, desc);
  EXPECT_TRUE(found.ok()) << found.status();
  return *std::move(found);
}

void ExpectLinear(const Primitive& primitive, float alpha) {
  alignas(64) float src[32], dst[32];
  for (int i = 0; i < 32; ++i) src[i] = static_cast<float>(i);
  ExecuteArgs args;
  args.Set(kArgSrc, src).Set(kArgDst, dst);
  ASSERT_TRUE(primitive.Execute(args, threading::Team::Serial()).ok());
  for (int i = 0; i < 32; ++i) EXPECT_FLOAT_EQ(dst[i], alpha * src[i] + 1);
}

// C02: everything that changes the primitive is in the key, nothing else.
TEST(PrimitiveKeyTest, DiffersWhereverThePrimitiveMay) {
  EltwiseDesc relu = std::get<EltwiseDesc>(Linear(1));
  relu.op.function = EltwiseAlgorithm::kRelu;
  EltwiseDesc wider = relu;
  wider.src = wider.dst = Plain({2, 17});
  EltwiseDesc training = relu;
  training.prop_kind = PropKind::kForwardTraining;
  SoftmaxDesc softmax;
  softmax.src = softmax.dst = relu.src;
  Attributes library;
  const CreateOptions baseline = {.max_isa = cpu::Isa::kBaseline, .only = {}};
  const CreateOptions named = {.max_isa = cpu::Isa::kBaseline, .only = "eltwise/reference"};
  const CreateOptions reference = {.max_isa = cpu::Isa::kBaseline, .reference_only = true};
  const std::vector<std::string> keys = {
      PrimitiveKey(relu, UserMode(), baseline),
      PrimitiveKey(wider, UserMode(), baseline),
      PrimitiveKey(training, UserMode(), baseline),
      PrimitiveKey(Linear(1), UserMode(), baseline),
      PrimitiveKey(Linear(2), UserMode(), baseline),
      PrimitiveKey(softmax, UserMode(), baseline),
      PrimitiveKey(relu, library, baseline),
      PrimitiveKey(relu, UserMode(), named),
      PrimitiveKey(relu, UserMode(), reference),
      PrimitiveKey(relu, UserMode(), {.max_isa = cpu::Isa::kAvx2, .only = {}}),
  };
  EXPECT_EQ(std::set<std::string>(keys.begin(), keys.end()).size(), keys.size());
  EXPECT_EQ(PrimitiveKey(Linear(2), UserMode(), named), PrimitiveKey(Linear(2), UserMode(), named));
}

TEST(PrimitiveCacheTest, SecondRequestGetsTheFirstOnesPrimitive) {
  PrimitiveCache cache(kMegabyte);
  const PrimitiveCache::Found first = GetOrDie(cache, Linear(2));
  const PrimitiveCache::Found second = GetOrDie(cache, Linear(2));
  EXPECT_FALSE(first.hit);
  EXPECT_GT(first.compile_time, absl::ZeroDuration());
  EXPECT_TRUE(second.hit);
  EXPECT_EQ(second.compile_time, absl::ZeroDuration());
  EXPECT_EQ(first.primitive, second.primitive);
  const CacheStatistics statistics = cache.Statistics();
  EXPECT_EQ(statistics.hits, 1);
  EXPECT_EQ(statistics.misses, 1);
  EXPECT_EQ(statistics.entries, 1);
  EXPECT_EQ(statistics.capacity_bytes, kMegabyte);
  EXPECT_GT(statistics.bytes, first.primitive->info().code_bytes);
}

// C03: concurrent creators of one key wait for a single compile.
TEST(PrimitiveCacheTest, SixteenThreadsAskingOneKeyCompileOnce) {
  constexpr int kThreads = 16;
  for (int round = 0; round < 20; ++round) {
    PrimitiveCache cache(kMegabyte);
    std::barrier start(kThreads);
    std::vector<std::shared_ptr<const Primitive>> found(kThreads);
    std::vector<std::thread> threads;
    for (int t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        start.arrive_and_wait();
        found[t] = GetOrDie(cache, Linear(3)).primitive;
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& primitive : found) EXPECT_EQ(primitive, found[0]);
    EXPECT_EQ(cache.Statistics().misses, 1);
    EXPECT_EQ(cache.Statistics().hits, kThreads - 1);
  }
}

// C04: a failure leaves nothing behind and reaches every thread that waited.
TEST(PrimitiveCacheTest, FailuresLeaveNothing) {
  PrimitiveCache cache(kMegabyte);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&] {
      EXPECT_EQ(Get(cache, Invalid()).status().code(), absl::StatusCode::kInvalidArgument);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const CacheStatistics statistics = cache.Statistics();
  EXPECT_EQ(statistics.entries, 0);
  EXPECT_EQ(statistics.bytes, 0);
  EXPECT_EQ(statistics.failures, statistics.misses);
  EXPECT_EQ(Get(cache, Invalid()).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(cache.Statistics().failures, statistics.failures + 1);
}

TEST(PrimitiveCacheTest, TenThousandDescriptorsStayWithinTheCapacity) {
  constexpr int kDescriptors = 10000;
  PrimitiveCache cache(kMegabyte);
  for (int i = 0; i < kDescriptors; ++i) {
    GetOrDie(cache, Linear(static_cast<float>(i)));
    ASSERT_LE(cache.Statistics().bytes, kMegabyte) << i;
  }
  const CacheStatistics statistics = cache.Statistics();
  EXPECT_EQ(statistics.misses, kDescriptors);
  EXPECT_GT(statistics.entries, 0);
  EXPECT_EQ(statistics.evictions, kDescriptors - statistics.entries);
}

TEST(PrimitiveCacheTest, EvictsTheLeastRecentlyUsed) {
  PrimitiveCache cache(256 * 1024);
  const PrimitiveCache::Found favourite = GetOrDie(cache, Linear(-1));
  for (int i = 0; i < 1000; ++i) {
    GetOrDie(cache, Linear(static_cast<float>(i)));
    ASSERT_TRUE(GetOrDie(cache, Linear(-1)).hit) << i;
  }
  EXPECT_GT(cache.Statistics().evictions, 0);
  EXPECT_FALSE(GetOrDie(cache, Linear(0)).hit);
}

TEST(PrimitiveCacheTest, EvictedCodeRunsAsLongAsSomebodyHoldsIt) {
  PrimitiveCache cache(256 * 1024);
  const PrimitiveCache::Found held = GetOrDie(cache, Linear(-1));
  for (int i = 0; i < 1000; ++i) GetOrDie(cache, Linear(static_cast<float>(i)));
  ExpectLinear(*held.primitive, -1);
  const PrimitiveCache::Found again = GetOrDie(cache, Linear(-1));
  EXPECT_FALSE(again.hit);
  EXPECT_NE(again.primitive, held.primitive);
  ExpectLinear(*again.primitive, -1);
}

TEST(PrimitiveCacheTest, WhatIsLargerThanTheCacheIsReturnedAndNotKept) {
  for (int64_t capacity : {0, 100}) {
    PrimitiveCache cache(capacity);
    ExpectLinear(*GetOrDie(cache, Linear(5)).primitive, 5);
    EXPECT_FALSE(GetOrDie(cache, Linear(5)).hit);
    EXPECT_EQ(cache.Statistics().entries, 0);
    EXPECT_EQ(cache.Statistics().bytes, 0);
  }
}

TEST(PrimitiveCacheTest, ThreadsThatEvictEachOthersCodeGetRightResults) {
  PrimitiveCache cache(128 * 1024);
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 300; ++i) {
        const float alpha = static_cast<float>((i * 7 + t) % 100);
        ExpectLinear(*GetOrDie(cache, Linear(alpha)).primitive, alpha);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_LE(cache.Statistics().bytes, 128 * 1024);
}

}  // namespace
}  // namespace tilewire::testing
