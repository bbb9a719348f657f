// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/single_flight_cache.h"

#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace tilewire::threading {
namespace {

using ::testing::ElementsAre;

TEST(SingleFlightCacheTest, ConcurrentCallersShareOneValue) {
  SingleFlightCache<int> map;
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
  SingleFlightCache<int> map;
  const auto make = [] {
    return absl::StatusOr<std::shared_ptr<const int>>(std::make_shared<const int>(1));
  };
  ASSERT_TRUE(map.GetOrMake("known", make).ok());
  Notification started, release;
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
  SingleFlightCache<int> map({.values = 2});
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
  SingleFlightCache<int> map(
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

TEST(SingleFlightCacheTest, KeysAreOfMadeValuesTheLastUsedFirst) {
  SingleFlightCache<int> map({.values = 3});
  const auto make = [] {
    return absl::StatusOr<std::shared_ptr<const int>>(std::make_shared<const int>(1));
  };
  const auto get = [&](const std::string& key) { EXPECT_TRUE(map.GetOrMake(key, make).ok()); };
  EXPECT_THAT(map.Keys(), ElementsAre());
  for (const char* key : {"a", "b", "c", "a"}) get(key);
  EXPECT_NE(map.Peek("b"), nullptr);
  EXPECT_THAT(map.Keys(), ElementsAre("a", "c", "b"));  // Peek() does not count
  get("d");                                             // and neither does Keys(): b goes
  EXPECT_THAT(map.Keys(), ElementsAre("d", "a", "c"));
  get("c");
  EXPECT_THAT(map.Keys(), ElementsAre("c", "d", "a"));
}

TEST(SingleFlightCacheTest, KeysLeaveOutWhatIsBeingMadeAndWhatFailed) {
  SingleFlightCache<int> map;
  const auto status = map.GetOrMake("bad",
                                    [&]() -> absl::StatusOr<std::shared_ptr<const int>> {
                                      EXPECT_EQ(map.size(), 1u);
                                      EXPECT_THAT(map.Keys(), ElementsAre());
                                      return absl::DataLossError("bad");
                                    })
                          .status();
  EXPECT_EQ(status, absl::DataLossError("bad"));
  EXPECT_THAT(map.Keys(), ElementsAre());
}

}  // namespace
}  // namespace tilewire::threading
