// SPDX-License-Identifier: Apache-2.0
//
// The loader on a fake engine: what is found, changes, goes or fails to load while requests run.
// No gRPC, so that the thread sanitizer sees all that happens.
#include "service/models/loader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <thread>

#include "absl/strings/match.h"
#include "tests/service/models/loader_fixture.h"
#include "tests/service/schedule/recorded_work.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

TEST_F(LoaderTest, AFileThatChangesIsLoadedAgainBesideTheOneThatServes) {
  const std::shared_ptr<const Model> old = Echo()->model;
  ASSERT_NE(old, nullptr);
  const std::shared_ptr<const Model> untouched = Echo("2")->model;
  WriteFile(directory_ / "echo/1/model.onnx", "another");
  Until([&] { return Echo()->model != old; });
  EXPECT_EQ(Echo()->state, ModelState::kReady);
  EXPECT_EQ(Echo("2")->model, untouched);
}

TEST_F(LoaderTest, AFileInsideAVersionsFolderIsFollowed) {
  const std::filesystem::path folder = directory_ / "parts/1/model.onnx";
  WriteFile(folder / "model.onnx", "");
  WriteFile(folder / "weights.bin", "one");
  Until([&] { return models_->FindLoaded("parts", "").ok(); });
  const std::shared_ptr<const Model> old = models_->Peek("parts", 1)->model;
  WriteFile(folder / "weights.bin", "another");
  Until([&] { return models_->Peek("parts", 1)->model != old; });
  WriteFile(folder / "model.onnx", "broken");
  Until([&] { return !models_->Peek("parts", 1)->load_status.ok(); });
  EXPECT_THAT(ReasonOf(*models_->Peek("parts", 1)), HasSubstr("not an ONNX file"));
}

TEST_F(LoaderTest, WhatDoesNotLoadLeavesTheOldVersionWithTheReason) {
  const std::shared_ptr<const Model> old = Echo()->model;
  WriteFile(directory_ / "echo/1/model.onnx", "broken");
  Until([&] { return !Echo()->load_status.ok(); });
  EXPECT_EQ(Echo()->state, ModelState::kReady);
  EXPECT_EQ(Echo()->model, old);
  EXPECT_THAT(ReasonOf(*Echo()), HasSubstr("not an ONNX file"));
  EXPECT_THAT(ReasonOf(*Echo()), ::testing::Not(HasSubstr(directory_.string())));
  WriteFile(directory_ / "echo/1/model.onnx", "mended");
  Until([&] { return Echo()->load_status.ok() && Echo()->model != old; });
  EXPECT_EQ(ReasonOf(*Echo()), "");
}

TEST_F(LoaderTest, AVersionThatARunFoundOverwrittenIsUnavailableUntilItIsLoadedAgain) {
  const std::shared_ptr<const ServedModel> served = Echo();
  const absl::Status told = models_->AfterRun(served, absl::FailedPreconditionError("written to"));
  EXPECT_THAT(told, StatusIs(absl::StatusCode::kUnavailable, "written to while it served"));
  Until([&] { return Echo()->state == ModelState::kReady && Echo()->model != served->model; });
  EXPECT_THAT(models_->AfterRun(served, absl::FailedPreconditionError("late")),
              StatusIs(absl::StatusCode::kUnavailable));
  EXPECT_EQ(Echo()->state, ModelState::kReady) << "another version has replaced it";
}

// Models are followed at Rescan() only.
class UncontrolledTest : public LoaderTest {
 protected:
  void SetUp() override {
    mode_ = ControlMode::kNone;
    LoaderTest::SetUp();
  }
};

TEST_F(UncontrolledTest, AScanFindsWhatIsNewAndWhatHasGone) {
  WriteFile(directory_ / "echo/3/model.onnx", "");
  WriteFile(directory_ / "more/1/model.onnx", "");
  std::filesystem::remove_all(directory_ / "echo/2");
  AwaitALook();
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(1, 2)) << "nothing was asked for";
  loader_->Rescan();
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{1, 3}; });
  Until([&] { return models_->FindLoaded("more", "").ok(); });
  std::filesystem::remove_all(directory_);
  const int scans = scans_;
  loader_->Rescan();
  Until([&] { return scans_ > scans; });
  AwaitALook();
  EXPECT_THAT(models_->Names(), ElementsAre("echo", "more")) << "an empty folder is a mistake";
}

TEST_F(UncontrolledTest, AScanTriesWhatIsNewOnce) {
  const int before = engine_.loads();
  WriteFile(directory_ / "echo/3/model.onnx", "broken");
  WriteFile(directory_ / "more/1/model.onnx", "broken");
  loader_->Rescan();
  Until([&] { return models_->Names().size() == 2 && models_->Versions("more").size() == 1; });
  const int looks = changes_;
  Until([&] { return changes_ > looks + 3; });
  EXPECT_EQ(engine_.loads() - before, 2);
  loader_->Rescan();
  Until([&] { return engine_.loads() - before == 4; });
}

TEST_F(LoaderTest, AVersionThatDoesNotLoadIsNoReadyOne) {
  EXPECT_TRUE(models_->AllReady());
  WriteFile(directory_ / "echo/3/model.onnx", "broken");
  loader_->Rescan();
  Until([&] { return models_->Versions("echo").size() == 3; });
  EXPECT_FALSE(models_->AllReady());
  EXPECT_TRUE(models_->AnyReady());
  EXPECT_EQ(Echo("")->version, 2);
  std::filesystem::remove_all(directory_ / "echo/3");
  loader_->Rescan();
  Until([&] { return models_->AllReady(); });
}

TEST_F(LoaderTest, RunsAndLoadsGoOnSideBySide) {
  std::atomic<bool> stop{false};
  std::thread client([&] {
    while (!stop) EXPECT_THAT(Run(), IsOk());
  });
  for (int round = 0; round < 5; ++round) {
    const std::shared_ptr<const Model> old = Echo("2")->model;
    WriteFile(directory_ / "echo/2/model.onnx", std::string(round, 'x'));
    loader_->Rescan();
    Until([&] { return Echo("2")->model != old; });
  }
  stop = true;
  client.join();
}

TEST_F(LoaderTest, WhatIsNewIsLoadedWithoutBeingAskedFor) {
  WriteFile(directory_ / "echo/3/model.onnx", "");
  WriteFile(directory_ / "more/1/model.onnx", "");
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
  Until([&] { return models_->FindLoaded("more", "").ok(); });
  std::filesystem::remove_all(directory_ / "more");
  Until([&] { return models_->Names() == std::vector<std::string>{"echo"}; });
}

TEST_F(LoaderTest, AFolderThatIsHeldBackIsLeftAlone) {
  WriteFile(directory_ / "echo/3/.loading", "");
  WriteFile(directory_ / "echo/3/model.onnx", "");
  WriteFile(directory_ / "echo/4/model.onnx", "");
  Until([&] { return models_->FindLoaded("echo", "4").ok(); });
  EXPECT_EQ(models_->Peek("echo", 3), nullptr);
  std::filesystem::remove(directory_ / "echo/3/.loading");
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
}

// The highest version of each model serves.
class LatestTest : public LoaderTest {
 protected:
  void SetUp() override {
    latest_ = 1;
    LoaderTest::SetUp();
  }
};

TEST_F(LatestTest, ANewVersionTakesThePlaceOfTheOld) {
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{3}; });
  const auto old = models_->Peek("echo", 2);
  ASSERT_NE(old, nullptr);
  EXPECT_EQ(old->state, ModelState::kUnloaded);
  EXPECT_EQ(ReasonOf(*old), "unloaded");
  EXPECT_EQ(ModelStateName(old->state), "UNAVAILABLE");
  EXPECT_THAT(models_->Find("echo", "2").status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_TRUE(models_->AllReady());
}

TEST_F(LatestTest, ABadVersionLeavesTheOldOneAndReadiness) {
  WriteFile(directory_ / "echo/3/model.onnx", "broken");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{2, 3}; });
  Until([&] { return Echo("2")->stands_in; });
  EXPECT_TRUE(models_->AllReady());
  EXPECT_EQ(Echo("")->version, 2);
  WriteFile(directory_ / "echo/3/model.onnx", "mended");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{3}; });
}

TEST_F(LatestTest, AChangedPolicyIsAppliedByTheNextScan) {
  WriteFile(directory_ / "echo/config.pbtxt", "version_policy { specific { versions: [ 1 ] } }");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{1}; });
  WriteFile(directory_ / "echo/config.pbtxt", "version_policy { all { } }");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{1, 2}; });
}

// Each load is told whether the model serves while it goes on.
class RollBackTest : public LatestTest {
 protected:
  void SetUp() override {
    engine_.on_load = [this] {
      if (has_started_ && !models_->FindLoaded("echo", "").ok()) is_missed_ = true;
    };
    LatestTest::SetUp();
    has_started_ = true;
  }

  std::atomic<bool> has_started_{false}, is_missed_{false};
};

TEST_F(RollBackTest, AVersionWhoseFolderGoesServesUntilTheOneBeforeItDoes) {
  std::atomic<bool> stop{false};
  std::thread client([&] {
    while (!stop) EXPECT_THAT(Run(), IsOk());
  });
  std::filesystem::remove_all(directory_ / "echo/2");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{1}; });
  stop = true;
  client.join();
  EXPECT_FALSE(is_missed_);
  EXPECT_EQ(models_->Peek("echo", 2), nullptr);
  EXPECT_TRUE(models_->AllReady());
}

TEST_F(RollBackTest, AVersionThatHasGoneDoesNotOutliveTheFailureOfTheOneBeforeIt) {
  WriteFile(directory_ / "echo/1/model.onnx", "broken");
  std::filesystem::remove_all(directory_ / "echo/2");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{1}; });
  EXPECT_FALSE(is_missed_);
  EXPECT_EQ(models_->Peek("echo", 2), nullptr);
  EXPECT_THAT(ReasonOf(*Echo()), HasSubstr("not an ONNX file"));
}

TEST_F(RollBackTest, AVersionThatComesBackIsLoadedAndServesOn) {
  const std::shared_ptr<const Model> old = Echo("2")->model;
  WriteFile(directory_ / "echo/1/.loading", "");
  std::filesystem::rename(directory_ / "echo/2", directory_ / "echo/.2");
  Until([&] { return Echo("2")->stands_in; });
  AwaitALook();
  EXPECT_EQ(Echo("2")->model, old);
  EXPECT_EQ(ReasonOf(*Echo("2")), "") << "its file is not looked for";
  std::filesystem::remove_all(directory_ / "echo/.2");
  WriteFile(directory_ / "echo/2/model.onnx", "another");
  Until([&] { return Echo("2")->model != old && !Echo("2")->stands_in; });
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
}

TEST_F(RollBackTest, AModelWhoseWholeFolderGoesIsUnloadedAtOnce) {
  WriteFile(directory_ / "more/1/model.onnx", "");
  Until([&] { return models_->FindLoaded("more", "").ok(); });
  const int loads = engine_.loads();
  std::filesystem::rename(directory_ / "echo", directory_ / ".echo");
  Until([&] { return models_->Names() == std::vector<std::string>{"more"}; });
  EXPECT_EQ(engine_.loads(), loads);
}

TEST_F(LatestTest, TheOldVersionIsFreedOnceItsLastRunHasEnded) {
  std::shared_ptr<const Model> running = Echo("")->model;
  const std::weak_ptr<const Model> old = running;
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return models_->Versions("echo") == std::vector<int64_t>{3}; });
  EXPECT_FALSE(old.expired());
  running = nullptr;
  Until([&] { return old.expired(); });
}

class UnloadFirstTest : public LoaderTest {
 protected:
  void SetUp() override {
    latest_ = 1;
    unload_first_ = true;
    engine_.on_load = [this] {
      threading::MutexLock lock(&mutex_);
      was_gone_ = watched_.expired();
    };
    LoaderTest::SetUp();
  }
  // The model whose memory the next load is to find free.
  void Watch(const std::shared_ptr<const Model>& model) {
    threading::MutexLock lock(&mutex_);
    watched_ = model;
    was_gone_ = false;
  }
  bool WasGone() {
    threading::MutexLock lock(&mutex_);
    return was_gone_;
  }

 private:
  threading::Mutex mutex_;
  std::weak_ptr<const Model> watched_ ABSL_GUARDED_BY(mutex_);
  bool was_gone_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(UnloadFirstTest, WhatServesIsGoneBeforeWhatReplacesItIsLoaded) {
  Watch(Echo("")->model);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
  EXPECT_TRUE(WasGone());
  Watch(Echo("3")->model);
  WriteFile(directory_ / "echo/3/model.onnx", "changed");
  Until([&] { return WasGone() && models_->FindLoaded("echo", "3").ok(); });
}

// Runs of models wait while they are held.
class WarmUpTest : public LoaderTest {
 protected:
  void SetUp() override {
    engine_.on_run = [this] {
      threading::MutexLock lock(&mutex_);
      const auto let_go = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_; };
      mutex_.Await(absl::Condition(&let_go));
    };
  }
  void TearDown() override { Hold(false); }

  void Hold(bool held) {
    threading::MutexLock lock(&mutex_);
    held_ = held;
  }
  // The number of runs that have begun.
  static int Runs(const ServedModel& served) {
    return static_cast<const tilewire::testing::FakeModel&>(*served.model).runs();
  }

  static int CountedRuns(const ServedModel& served) {
    return static_cast<const tilewire::testing::FakeModel&>(*served.model).counted_runs();
  }

  threading::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
};

TEST_F(WarmUpTest, AModelServesBeforeItsRunOnZerosHasEnded) {
  Hold(true);
  Start(/*warm_up_first=*/false);
  started_.WaitForNotification();
  EXPECT_EQ(Echo()->state, ModelState::kReady);
  EXPECT_EQ(Echo("2")->state, ModelState::kReady);
  Until([&] { return Runs(*Echo()) == 1; });
  Hold(false);
  Until([&] { return Runs(*Echo("2")) == 1; });
  EXPECT_EQ(CountedRuns(*Echo()), 0) << "live profiles are of requests";
  EXPECT_EQ(CountedRuns(*Echo("2")), 0);
}

TEST_F(WarmUpTest, IfAskedForAModelServesOnlyOnceItHasRun) {
  Hold(true);
  Start(/*warm_up_first=*/true);
  EXPECT_EQ(Echo()->state, ModelState::kLoading);
  Hold(false);
  started_.WaitForNotification();
  EXPECT_EQ(Runs(*Echo()), 1);
  EXPECT_EQ(Runs(*Echo("2")), 1);
}

TEST_F(WarmUpTest, AVersionTakesThePlaceOfAnotherOnlyOnceItHasRun) {
  Start(/*warm_up_first=*/false);
  Until([&] { return Echo("2")->model != nullptr && Runs(*Echo("2")) == 1; });
  const std::shared_ptr<const Model> old = Echo()->model;
  WriteFile(directory_ / "echo/1/model.onnx", "another");
  Until([&] { return Echo()->model != old; });
  EXPECT_EQ(Runs(*Echo()), 1);
  EXPECT_EQ(CountedRuns(*Echo()), 0);
}

TEST_F(WarmUpTest, WhatARequestHasRunNeedsNoRunOnZeros) {
  Hold(true);
  Start(/*warm_up_first=*/false);
  WriteFile(directory_ / "more/1/model.onnx", "");
  loader_->Rescan();
  Until([&] { return models_->FindLoaded("more", "").ok() && Runs(*Echo()) == 1; });
  const std::vector<InputTensor> inputs = {{.dims = {1, 2, 3, 4}}, {.dims = {1, 5}}};
  RecordedWork request({.cost_key = CostKey(*Echo("2"), inputs)});
  ASSERT_THAT(dispatcher_.Submit(&request), IsOk());
  request.Wait();
  Until([&] { return dispatcher_.HasRun(request.terms().cost_key); });
  Hold(false);
  Until([&] { return Runs(**models_->Find("more", "1")) == 1; });
  EXPECT_EQ(Runs(*Echo("2")), 0);
}

TEST_F(WarmUpTest, ARunOnZerosIsChargedItsMemoryBesideRequests) {
  Hold(true);
  Start(/*warm_up_first=*/false);
  Until([&] { return Echo()->model != nullptr && Runs(*Echo()) == 1; });
  EXPECT_GT(admission_.bytes(), 0);
  Hold(false);
  Until([&] { return Runs(*Echo("2")) == 1 && admission_.bytes() == 0; });
}

// The test starts the loader.
class LoaderMemoryTest : public LoaderTest {
  void SetUp() override {}
};

TEST_F(LoaderMemoryTest, WhereItDoesNotSufficeTheReasonIsTheModels) {
  ModelMemory memory(&engine_, &admission_,
                     {.shared = int64_t{50} << 20,
                      .requests = int64_t{10} << 20,
                      .limit = int64_t{80} << 20,
                      .granted = "80 MB granted by a group",
                      .held = [] { return int64_t{30} << 20; }});
  Start(/*warm_up_first=*/false, &memory);
  started_.WaitForNotification();
  EXPECT_TRUE(models_->AllReady());
  WriteFile(directory_ / "large/1/model.onnx", std::string(30 << 20, 'x'));
  loader_->Rescan();
  // A look may find the folder before the file is there.
  Until([&] {
    return models_->Names().size() == 2 &&
           absl::StrContains(ReasonOf(*models_->Find("large", "").value()),
                             "and the server holds 30 MB of 80 MB granted by a group");
  });
  EXPECT_EQ(admission_.max_bytes(), int64_t{10} << 20);
  loader_ = nullptr;
}

}  // namespace
}  // namespace tilewire::service
