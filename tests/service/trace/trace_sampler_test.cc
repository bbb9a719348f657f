// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_sampler.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

namespace tilewire::service {
namespace {

int Taken(TraceSampler* sampler, int asked, bool client_traces_it) {
  int taken = 0;
  for (int i = 0; i < asked; ++i) taken += sampler->Take(client_traces_it) ? 1 : 0;
  return taken;
}

TEST(TraceSamplerTest, TakesOneInSoManyAndAllThatClientsTrace) {
  const struct {
    TraceTerms terms;
    bool client_traces_it;
    int asked, taken;
  } cases[] = {
      {{.rate = 1}, false, 10, 10},
      {{.rate = 4}, false, 40, 10},
      {{.rate = 1000}, false, 10, 1},
      {{.rate = 1000}, true, 10, 10},
      {{.rate = 1, .count = 3}, false, 10, 3},
      {{.rate = 1000, .count = 3}, true, 10, 3},
      {{.rate = 1, .count = 0}, true, 10, 0},
  };
  for (const auto& [terms, client_traces_it, asked, taken] : cases) {
    TraceSampler sampler(terms);
    EXPECT_EQ(Taken(&sampler, asked, client_traces_it), taken)
        << terms.rate << " " << terms.count << " " << client_traces_it;
  }
}

TEST(TraceSamplerTest, IsOffWhereNoneIsLeft) {
  EXPECT_TRUE(TraceSampler(TraceTerms()).IsOn());
  EXPECT_FALSE(TraceSampler({.on = false}).IsOn());
  TraceSampler sampler({.rate = 1, .count = 1});
  EXPECT_TRUE(sampler.IsOn());
  EXPECT_TRUE(sampler.Take(false));
  EXPECT_FALSE(sampler.IsOn());
  EXPECT_EQ(sampler.terms().count, 0);
  sampler.Change({.count = 2});
  EXPECT_TRUE(sampler.IsOn());
}

TEST(TraceSamplerTest, ChangesWhatIsNamedAlone) {
  TraceSampler sampler({.rate = 10, .count = 5});
  sampler.Change({.rate = 1});
  EXPECT_EQ(sampler.terms().rate, 1u);
  EXPECT_EQ(sampler.terms().count, 5);
  EXPECT_TRUE(sampler.terms().on);
  sampler.Change({.on = false});
  EXPECT_FALSE(sampler.IsOn());
  EXPECT_EQ(sampler.first().rate, 10u);
}

TEST(TraceSamplerTest, ThreadsTakeNoMoreThanAreLeft) {
  TraceSampler sampler({.rate = 1, .count = 1000});
  std::atomic<int> taken{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] { taken += Taken(&sampler, 1000, /*client_traces_it=*/true); });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken, 1000);
}

}  // namespace
}  // namespace tilewire::service
