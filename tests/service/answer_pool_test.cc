// SPDX-License-Identifier: Apache-2.0
#include "service/wire/answer_pool.h"

#include <memory>
#include <utility>

#include "gtest/gtest.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

TEST(AnswerPoolTest, ABufferServesTheNextAnswerOfItsSizeOnly) {
  const auto pool = std::make_shared<AnswerPool>();
  AlignedBuffer buffer = *pool->Take(100);
  const std::byte* const place = buffer.data();
  pool->Return(std::move(buffer));
  EXPECT_EQ(pool->idle_bytes(), 100);
  EXPECT_NE(pool->Take(101)->data(), place);
  EXPECT_EQ(pool->Take(100)->data(), place);
  EXPECT_EQ(pool->idle_bytes(), 0);
}

TEST(AnswerPoolTest, ASliceGivesItsBufferBackWhenItIsGone) {
  auto pool = std::make_shared<AnswerPool>();
  {
    const grpc::Slice slice = pool->AsSlice(*pool->Take(4096));
    EXPECT_EQ(slice.size(), 4096);
    EXPECT_EQ(pool->idle_bytes(), 0);
  }
  EXPECT_EQ(pool->idle_bytes(), 4096);
  const grpc::Slice outlives = pool->AsSlice(*pool->Take(4096));
  pool = nullptr;
  EXPECT_EQ(outlives.size(), 4096);
}

TEST(AnswerPoolTest, WhatIsOldIsFreedAndWhatExceedsTheBoundIsNotKept) {
  const auto pool = std::make_shared<AnswerPool>();
  pool->Return(*AlignedBuffer::Allocate(64));
  pool->FreeReturnedBefore(SteadyNow() - absl::Minutes(1));
  EXPECT_EQ(pool->idle_bytes(), 64);
  pool->FreeReturnedBefore(SteadyNow() + absl::Seconds(1));
  EXPECT_EQ(pool->idle_bytes(), 0);
  for (size_t i = 0; i < 2 * AnswerPool::kMaxIdleBuffers; ++i) {
    pool->Return(*AlignedBuffer::Allocate(64));
  }
  EXPECT_EQ(pool->idle_bytes(), 64 * AnswerPool::kMaxIdleBuffers);
}

}  // namespace
}  // namespace tilewire::service
