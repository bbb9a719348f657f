// SPDX-License-Identifier: Apache-2.0
//
// The loader and trials, whose results a fake decides.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "absl/strings/match.h"
#include "engine/threading/mutex.h"
#include "tests/service/models/loader_fixture.h"
#include "tests/support/status_matchers.h"

namespace tilewire::service {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tilewire::testing::IsOk;
using tilewire::testing::StatusIs;

// Thread-safe. Trials wait while they are held.
class FakeTrial final : public Trial {
 public:
  absl::Status Run(const std::vector<Dims>& /*shapes*/, const TrialMemory& memory,
                   absl::FunctionRef<absl::Status()> between, ServedModel* found) const override {
    threading::MutexLock lock(&mutex_);
    tried_.push_back(found->version);
    memory_ = memory;
    const auto let_go = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return !held_; };
    while (!mutex_.AwaitWithTimeout(absl::Condition(&let_go), absl::Milliseconds(5))) {
      if (absl::Status ended = between(); !ended.ok()) return ended;
    }
    return result_;
  }

  void Hold(bool held) {
    threading::MutexLock lock(&mutex_);
    held_ = held;
  }
  void SetResult(const absl::Status& result) {
    threading::MutexLock lock(&mutex_);
    result_ = result;
  }
  std::vector<int64_t> tried() const {
    threading::MutexLock lock(&mutex_);
    return tried_;
  }
  TrialMemory memory() const {
    threading::MutexLock lock(&mutex_);
    return memory_;
  }

 private:
  mutable threading::Mutex mutex_;
  bool held_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Status result_ ABSL_GUARDED_BY(mutex_);
  mutable std::vector<int64_t> tried_ ABSL_GUARDED_BY(mutex_);
  mutable TrialMemory memory_ ABSL_GUARDED_BY(mutex_);
};

class LoaderTrialTest : public LoaderTest {
 protected:
  void SetUp() override {
    latest_ = 1;
    trial_ = &fake_;
  }
  void Begin(ModelMemory* memory = nullptr) {
    Start(/*warm_up_first=*/false, memory);
    started_.WaitForNotification();
  }
  bool HasFailed(int64_t version) {
    const auto now = models_->Peek("echo", version);
    return now != nullptr && now->state == ModelState::kUnavailable;
  }
  void TearDown() override {
    fake_.Hold(false);
    loader_ = nullptr;
  }

  FakeTrial fake_;
};

TEST_F(LoaderTrialTest, OnlyWhatIsLoadedAfterTheStartIsTriedOut) {
  Begin();
  EXPECT_THAT(fake_.tried(), ElementsAre());
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
  EXPECT_THAT(fake_.tried(), ElementsAre(3));
  EXPECT_EQ(engine_.loads(), 2);
}

TEST_F(LoaderTrialTest, WhatFailsItsTrialIsNeverOpened) {
  Begin();
  fake_.SetResult(absl::InternalError("its trial died of SIGSEGV"));
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return HasFailed(3); });
  Until([&] { return Echo("2")->stands_in; });
  EXPECT_EQ(Echo("3")->state, ModelState::kUnavailable);
  EXPECT_THAT(ReasonOf(*Echo("3")), HasSubstr("its trial died of SIGSEGV"));
  EXPECT_THAT(Run(), IsOk());
  EXPECT_TRUE(models_->AllReady());
  AwaitALook();
  EXPECT_THAT(fake_.tried(), ElementsAre(3))
      << "a failed version was tried again although its files are the same";
  EXPECT_EQ(engine_.loads(), 1);
  fake_.SetResult(absl::OkStatus());
  WriteFile(directory_ / "echo/3/model.onnx", "mended");
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
}

TEST_F(LoaderTrialTest, RequestsAreAnsweredWhileATrialHangs) {
  Begin();
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return !fake_.tried().empty(); });
  EXPECT_THAT(Run(), IsOk());
  EXPECT_EQ(Echo("")->version, 2);
}

TEST_F(LoaderTrialTest, FilesThatChangeMeanwhileAreTriedOutAgain) {
  Begin();
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return !fake_.tried().empty(); });
  WriteFile(directory_ / "echo/3/model.onnx", "changed");
  fake_.Hold(false);
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
  EXPECT_EQ(fake_.tried().size(), 2u);
  EXPECT_EQ(engine_.loads(), 2);
}

TEST_F(LoaderTrialTest, ItsMemoryIsTakenFromRequestsWhileItLasts) {
  ModelMemory memory(&engine_, &admission_,
                     {.shared = int64_t{64} << 20,
                      .requests = int64_t{30} << 20,
                      .limit = int64_t{500} << 20,
                      .granted = "500 MB granted by a group",
                      .held = [] { return int64_t{30} << 20; }});
  Begin(&memory);
  Until([&] { return admission_.bytes() == 0; });
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return !fake_.tried().empty(); });
  EXPECT_EQ(fake_.memory().run_bytes, int64_t{16} << 20) << "as much as is always left";
  EXPECT_GT(admission_.bytes(), 0);
  fake_.Hold(false);
  Until([&] { return models_->FindLoaded("echo", "3").ok() && admission_.bytes() == 0; });
  loader_ = nullptr;
}

TEST_F(LoaderTrialTest, ItWaitsForMemoryThatRequestsHoldAndTheyAreChargedOn) {
  ModelMemory memory(&engine_, &admission_,
                     {.shared = int64_t{64} << 20,
                      .requests = int64_t{30} << 20,
                      .limit = int64_t{500} << 20,
                      .granted = "500 MB granted by a group",
                      .held = [] { return int64_t{30} << 20; }});
  Begin(&memory);
  Until([&] { return admission_.bytes() == 0; });
  {
    Ticket large(&admission_), small(&admission_);
    ASSERT_THAT(large.Charge(int64_t{25} << 20, "a request"), IsOk());
    WriteFile(directory_ / "echo/3/model.onnx", "");
    bool is_refused = false;  // a loan to the trial; asked once, the shortage is forgotten
    Until([&] { return is_refused = is_refused || admission_.TakeShortage() > 0; });
    EXPECT_THAT(small.Charge(int64_t{4} << 20, "a request"), IsOk());
    EXPECT_EQ(admission_.lent(), 0);
    EXPECT_THAT(fake_.tried(), ElementsAre());
  }
  Until([&] { return models_->FindLoaded("echo", "3").ok() && admission_.bytes() == 0; });
  loader_ = nullptr;
}

TEST_F(LoaderTrialTest, WhereMemoryDoesNotSufficeForATrialNothingIsLoaded) {
  ModelMemory memory(&engine_, &admission_,
                     {.shared = int64_t{64} << 20,
                      .requests = int64_t{30} << 20,
                      .limit = int64_t{80} << 20,
                      .granted = "80 MB granted by a group",
                      .held = [] { return int64_t{30} << 20; }});
  Begin(&memory);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return HasFailed(3); });
  EXPECT_THAT(ReasonOf(*Echo("3")), HasSubstr("trying it out takes about 52 MB, and the server "
                                              "holds 30 MB of 80 MB granted by a group"));
  EXPECT_THAT(fake_.tried(), ElementsAre());
  loader_ = nullptr;
}

TEST_F(LoaderTrialTest, WhatIsToGoFirstStaysWhereItsSuccessorFails) {
  unload_first_ = true;
  Begin();
  fake_.SetResult(absl::InternalError("its trial died of SIGSEGV"));
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return HasFailed(3); });
  EXPECT_THAT(Run(), IsOk());
}

TEST_F(LoaderTrialTest, TheServersEndEndsATrial) {
  Begin();
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return !fake_.tried().empty(); });
  loader_ = nullptr;
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
}

TEST_F(LoaderTrialTest, AVersionThatIsTriedOutIsShownAsLoadingAndIsNotWaitedFor) {
  Begin();
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return !fake_.tried().empty(); });
  const auto shown = models_->Peek("echo", 3);
  ASSERT_NE(shown, nullptr);
  EXPECT_EQ(ModelStateName(shown->state), "LOADING");
  EXPECT_EQ(ReasonOf(*shown), "it is tried out and loaded");
  EXPECT_THAT(models_->Find("echo", "3").status(), StatusIs(absl::StatusCode::kNotFound));
  EXPECT_THAT(models_->Versions("echo"), ElementsAre(2));
  EXPECT_TRUE(models_->AllReady());
  fake_.Hold(false);
  Until([&] { return models_->FindLoaded("echo", "3").ok(); });
  EXPECT_EQ(ReasonOf(*Echo("3")), "");
}

TEST_F(LoaderTrialTest, AVersionWhoseNewFileIsTriedOutServesAndSaysSo) {
  Begin();
  fake_.Hold(true);
  fake_.SetResult(absl::InternalError("its trial died of SIGSEGV"));
  WriteFile(directory_ / "echo/2/model.onnx", "another");
  Until([&] { return !fake_.tried().empty(); });
  EXPECT_EQ(Echo("2")->state, ModelState::kReady);
  EXPECT_EQ(ReasonOf(*Echo("2")),
            "what was loaded before serves; the files there now are tried out and loaded");
  EXPECT_TRUE(models_->AllReady());
  fake_.Hold(false);
  Until([&] { return absl::StrContains(ReasonOf(*Echo("2")), "failed to load: its trial died"); });
  fake_.SetResult(absl::OkStatus());
  WriteFile(directory_ / "echo/2/model.onnx", "mended, at last");
  Until([&] { return ReasonOf(*Echo("2")).empty(); });
}

TEST_F(LoaderTrialTest, AVersionThatFailedIsShownAsLoadingWhenItIsTriedAgain) {
  Begin();
  fake_.SetResult(absl::InternalError("its trial died of SIGSEGV"));
  WriteFile(directory_ / "echo/3/model.onnx", "");
  Until([&] { return HasFailed(3) && Echo("2")->stands_in; });
  fake_.Hold(true);
  WriteFile(directory_ / "echo/3/model.onnx", "mended");
  Until([&] { return fake_.tried().size() == 2; });
  EXPECT_EQ(Echo("3")->state, ModelState::kLoading);
  EXPECT_TRUE(models_->AllReady()) << "another version stands in for it";
  fake_.Hold(false);
  Until([&] { return HasFailed(3); });
}

}  // namespace
}  // namespace tilewire::service
