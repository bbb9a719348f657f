// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_memory.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "service/models/repository_scan.h"
#include "tests/support/echo_repository.h"
#include "tests/support/fake_engine.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using tilewire::testing::FakeModel;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

constexpr int64_t kMiB = int64_t{1} << 20;
constexpr int64_t kOfAModel = FakeModel::kHeldBytes + 4 * kMiB;

class ModelMemoryTest : public ::testing::Test {
 protected:
  ModelMemory Make(int64_t shared_mb, bool is_fixed = false) {
    return ModelMemory(&engine_, &admission_,
                       {.shared = shared_mb * kMiB,
                        .requests = admission_.max_bytes(),
                        .is_fixed = is_fixed,
                        .limit = 200 * kMiB,
                        .granted = "200 MB granted by a group",
                        .held = [this] { return held_; }});
  }
  void LoadBoth() {
    std::vector<ServedModel> found = ScanDirectory(directory_.string(), {.latest = 0}).value();
    for (ServedModel& served : found) {
      served.state = ModelState::kReady;
      served.model = engine_.LoadModel(served.path, {}).value();
      models_.Publish(served);
    }
  }

  const std::filesystem::path directory_ = tilewire::testing::WriteEchoRepository();
  tilewire::testing::FakeEngine engine_;
  Admission admission_{100 * kMiB};
  int64_t held_ = 20 * kMiB;
  ModelRepository models_;
};

TEST_F(ModelMemoryTest, RequestsGetWhatModelsLeave) {
  ModelMemory memory = Make(110);
  memory.Update(models_);
  EXPECT_EQ(admission_.max_bytes(), 100 * kMiB) << "at most half of what is granted";
  LoadBoth();
  memory.Update(models_);
  EXPECT_EQ(admission_.max_bytes(), 110 * kMiB - 2 * kOfAModel);
  EXPECT_EQ(engine_.pooled_bytes(), admission_.max_bytes());
}

TEST_F(ModelMemoryTest, RequestsKeepALittleHoweverMuchModelsHold) {
  ModelMemory memory = Make(20);
  LoadBoth();
  memory.Update(models_);
  EXPECT_EQ(admission_.max_bytes(), 4 * kMiB);
}

TEST_F(ModelMemoryTest, WhatTheCommandLineGivesRequestsTheyKeep) {
  ModelMemory memory = Make(20, /*is_fixed=*/true);
  LoadBoth();
  memory.Update(models_);
  EXPECT_EQ(admission_.max_bytes(), 100 * kMiB);
}

TEST_F(ModelMemoryTest, ALoadThatDoesNotFitIsRefusedWithTheNumbers) {
  ModelMemory memory = Make(150);
  EXPECT_THAT(memory.BeginLoad(models_, 155 * kMiB), IsOk());
  memory.EndLoad();
  held_ = 21 * kMiB;
  EXPECT_THAT(memory.BeginLoad(models_, 155 * kMiB),
              StatusIs(absl::StatusCode::kResourceExhausted,
                       "loading it takes about 155 MB, and the server holds 21 MB of 200 MB "
                       "granted by a group; requests keep another 25 MB"));
  EXPECT_TRUE(memory.TakeRoom()) << "what was refused takes nothing";
  EXPECT_EQ(admission_.bytes(), 0);
}

TEST_F(ModelMemoryTest, ALoadThatTakesNearlyAllEnds) {
  ModelMemory memory = Make(150);
  held_ = 187 * kMiB;
  EXPECT_THAT(memory.CheckLoad(), IsOk());
  held_ = 188 * kMiB;
  EXPECT_THAT(memory.CheckLoad(), StatusIs(absl::StatusCode::kResourceExhausted,
                                           "the server holds 188 MB of 200 MB granted by a group"));
}

TEST_F(ModelMemoryTest, ALoadTakesFromRequestsWhatItNeedsBeyondTheirShare) {
  ModelMemory memory = Make(150);
  Ticket ticket(&admission_);
  ASSERT_THAT(ticket.Charge(30 * kMiB, "a request"), IsOk());
  ASSERT_THAT(memory.BeginLoad(models_, 40 * kMiB), IsOk());
  EXPECT_TRUE(memory.TakeRoom());
  EXPECT_EQ(admission_.bytes(), 30 * kMiB) << "50 MB are left beside the requests' share";
  memory.EndLoad();
  ASSERT_THAT(memory.BeginLoad(models_, 122 * kMiB), IsOk());
  EXPECT_FALSE(memory.TakeRoom());
  EXPECT_THAT(ticket.Charge(70 * kMiB, "tensors"), IsOk()) << "a load that waits takes nothing";
  ticket.GiveBack(72 * kMiB);
  EXPECT_TRUE(memory.TakeRoom());
  EXPECT_EQ(admission_.lent(), 72 * kMiB);
  EXPECT_EQ(admission_.bytes(), 100 * kMiB);
  EXPECT_TRUE(memory.TakeRoom()) << "once";
  EXPECT_EQ(admission_.bytes(), 100 * kMiB);
  memory.EndLoad();
  EXPECT_EQ(admission_.bytes(), 28 * kMiB);
  EXPECT_EQ(admission_.lent(), 0);
}

TEST_F(ModelMemoryTest, ALoadThatTakesMoreThanThereIsToShareLeavesRequestsAQuarter) {
  ModelMemory memory = Make(90);
  ASSERT_THAT(memory.BeginLoad(models_, 150 * kMiB), IsOk());
  ASSERT_TRUE(memory.TakeRoom());
  EXPECT_EQ(admission_.lent(), 75 * kMiB);
  Ticket ticket(&admission_);
  EXPECT_THAT(ticket.Charge(25 * kMiB, "a request"), IsOk());
  EXPECT_THAT(ticket.Charge(1, "tensors"),
              StatusIs(absl::StatusCode::kUnavailable,
                       "requests hold 26214400, and a model that loads 78643200, of 104857600"));
  memory.EndLoad();
  EXPECT_THAT(ticket.Charge(1, "tensors"), IsOk());
}

TEST_F(ModelMemoryTest, WhereRequestsMayHoldNothingALoadTakesNothingFromThem) {
  Admission nothing(0);
  ModelMemory memory(&engine_, &nothing,
                     {.shared = 0, .limit = 200 * kMiB, .held = [this] { return held_; }});
  ASSERT_THAT(memory.BeginLoad(models_, 40 * kMiB), IsOk());
  EXPECT_TRUE(memory.TakeRoom());
  EXPECT_EQ(nothing.bytes(), 0);
}

}  // namespace
}  // namespace tilewire::service
