// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cores.h"

#include <sched.h>

#include <thread>

#include "gtest/gtest.h"

namespace tilewire::cpu {
namespace {

TEST(CoresTest, AtLeastOneAndNoMoreThanTheMachineHas) {
  EXPECT_GE(GrantedCores(), 1);
  EXPECT_LE(GrantedCores(), static_cast<int>(std::thread::hardware_concurrency()));
}

TEST(CoresTest, FollowsTheAffinityMask) {
  int cores = 0;
  // On a thread of its own, so that the mask dies with it.
  std::thread([&] {
    cpu_set_t mine;
    ASSERT_EQ(sched_getaffinity(0, sizeof(mine), &mine), 0);
    int first = 0;
    while (!CPU_ISSET(first, &mine)) ++first;
    CPU_ZERO(&mine);
    CPU_SET(first, &mine);
    ASSERT_EQ(sched_setaffinity(0, sizeof(mine), &mine), 0);
    cores = GrantedCores();
  }).join();
  EXPECT_EQ(cores, 1);
}

}  // namespace
}  // namespace tilewire::cpu
