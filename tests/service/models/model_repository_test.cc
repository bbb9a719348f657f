// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_repository.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"

namespace tilewire::service {
namespace {

using ::testing::AnyOf;
using ::testing::SizeIs;

ServedModel ModelOf(const std::string& name) {
  ServedModel model;
  model.name = name;
  return model;
}

// Versions are published and removed all the time; what a reader looks at stays whole.
TEST(ModelRepositoryTest, ReadersKeepWhatTheyLookAt) {
  constexpr int kStaying = 200, kChanges = 1000;
  std::vector<ServedModel> found;
  for (int i = 0; i < kStaying; ++i) found.push_back(ModelOf(absl::StrCat("stays", i)));
  ModelRepository models(std::move(found));
  std::atomic<bool> done = false;
  std::thread writer([&] {
    for (int i = 0; i < kChanges; ++i) {
      models.Publish(ModelOf("a guest"));
      models.Remove(ModelOf("a guest"));
    }
    done = true;
  });
  do {
    EXPECT_THAT(models.Names(), SizeIs(AnyOf(kStaying, kStaying + 1)));
    EXPECT_THAT(models.All(), SizeIs(AnyOf(kStaying, kStaying + 1)));
    EXPECT_THAT(models.NotReady(), SizeIs(AnyOf(kStaying, kStaying + 1)));
  } while (!done);
  writer.join();
  EXPECT_THAT(models.Names(), SizeIs(kStaying));
}

}  // namespace
}  // namespace tilewire::service
