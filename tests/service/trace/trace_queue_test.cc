// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_queue.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "tests/service/trace/traced_requests.h"

namespace tilewire::service {
namespace {

TEST(TraceQueueTest, TakesNoMoreThanItHasPlacesFor) {
  TraceQueue queue(4);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 4; ++i) EXPECT_TRUE(queue.Add(testing::RequestAt(i)));
    EXPECT_FALSE(queue.Add(testing::RequestAt(5)));
    TracedRequest taken;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(queue.Take(&taken));
      EXPECT_EQ(taken.record.arrival_ns, testing::kBegin + i * 1000);
    }
    EXPECT_FALSE(queue.Take(&taken));
  }
}

// Each is either refused or taken whole, once.
TEST(TraceQueueTest, ManyAddWhileOneTakes) {
  constexpr int kThreads = 3, kEach = 20'000;
  TraceQueue queue(64);
  std::atomic<int> refused{0}, running{kThreads};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      for (int i = 0; i < kEach; ++i) {
        TracedRequest request = testing::RequestAt(i);
        request.record.model = thread;
        request.record.rows = i;
        refused += queue.Add(request) ? 0 : 1;
      }
      --running;
    });
  }
  std::vector<int64_t> last(kThreads, -1);
  int taken = 0;
  TracedRequest request;
  for (bool ended = false; !ended;) {
    ended = running == 0;
    while (queue.Take(&request)) {
      ++taken;
      EXPECT_EQ(request.record.arrival_ns, testing::kBegin + request.record.rows * int64_t{1000});
      EXPECT_GT(int64_t{request.record.rows}, last[request.record.model]);
      last[request.record.model] = request.record.rows;
    }
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken + refused, kThreads * kEach);
}

}  // namespace
}  // namespace tilewire::service
