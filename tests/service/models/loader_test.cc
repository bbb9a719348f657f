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

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/threading/mutex.h"
#include "service/models/repository_scan.h"
#include "tests/service/schedule/recorded_work.h"
#include "tests/support/echo_repository.h"
#include "tests/support/fake_engine.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;
using tilewire::testing::WriteEchoRepository;
using tilewire::testing::WriteFile;

class LoaderTest : public ::testing::Test {
 protected:
  void SetUp() override {
    Start(/*warm_up_first=*/false);
    started_.WaitForNotification();
  }

  void Start(bool warm_up_first, ModelMemory* memory = nullptr) {
    directory_ = WriteEchoRepository();
    models_ = std::make_unique<ModelRepository>(ScanDirectory(directory_.string()).value());
    loader_ =
        std::make_unique<Loader>(&engine_, models_.get(), &dispatcher_, &admission_,
                                 Loader::Settings{.scan =
                                                      [this] {
                                                        ++scans_;
                                                        return ScanDirectory(directory_.string());
                                                      },
                                                  .look_every = absl::Milliseconds(10),
                                                  .warm_up_first = warm_up_first,
                                                  .started = [this] { started_.Notify(); },
                                                  .changed = [this] { ++changes_; },
                                                  .memory = memory});
  }

  std::shared_ptr<const ServedModel> Echo(const char* version = "1") {
    return models_->Find("echo", version).value();
  }
  // Fails if it does not come to hold.
  template <typename Condition>
  void Until(Condition holds) {
    for (int i = 0; i < 12'000 && !holds(); ++i) absl::SleepFor(absl::Milliseconds(5));
    EXPECT_TRUE(holds());
  }

  // The loader has looked at all files, from the first to the last, and done what it does then.
  void AwaitALook() {
    const int looks = changes_;  // the one that goes on may have begun before
    Until([&] { return changes_ >= looks + 2; });
  }

  // A run as a request does it: on what serves when it begins.
  absl::Status Run() {
    ABSL_ASSIGN_OR_RETURN(const auto served, models_->FindLoaded("echo", ""));
    const std::string image(24 * sizeof(float), 'i'), row(5 * sizeof(float), 'r');
    const std::vector<InputTensor> inputs = {{.dims = {1, 2, 3, 4}, .pieces = {image}},
                                             {.dims = {1, 5}, .pieces = {row}}};
    const std::vector<OutputRequest> outputs = {{0, Layout::kNchw}};
    return served->model->Run(inputs, outputs, {}).status();
  }

  std::filesystem::path directory_;
  tilewire::testing::FakeEngine engine_;
  Dispatcher dispatcher_{&engine_.arena(), {}};
  Admission admission_{int64_t{1} << 30};
  std::unique_ptr<ModelRepository> models_;
  std::atomic<int> changes_{0}, scans_{0};
  threading::Notification started_;
  std::unique_ptr<Loader> loader_;  // last: ends before what it uses
};

TEST_F(LoaderTest, AFileThatChangesIsLoadedAgainBesideTheOneThatServes) {
  const std::shared_ptr<const Model> old = Echo()->model;
  ASSERT_NE(old, nullptr);
  const std::shared_ptr<const Model> untouched = Echo("2")->model;
  WriteFile(directory_ / "echo/1/model.onnx", "another");
  Until([&] { return Echo()->model != old; });
  EXPECT_EQ(Echo()->state, ModelState::kReady);
  EXPECT_EQ(Echo("2")->model, untouched);
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

TEST_F(LoaderTest, AScanFindsWhatIsNewAndWhatHasGone) {
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

TEST_F(LoaderTest, AScanTriesWhatIsNewOnce) {
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
  Until([&] { return models_->Names().size() == 2; });
  const std::string reason = ReasonOf(*models_->Find("large", "").value());
  EXPECT_THAT(reason, HasSubstr("and the server holds 30 MB of 80 MB granted by a group"));
  EXPECT_EQ(admission_.max_bytes(), int64_t{10} << 20);
  loader_ = nullptr;
}

}  // namespace
}  // namespace tilewire::service
