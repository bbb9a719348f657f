// SPDX-License-Identifier: Apache-2.0
//
// A loader on a fake engine and the model "echo", versions 1 and 2.
#ifndef TESTS_SERVICE_MODELS_LOADER_FIXTURE_H_
#define TESTS_SERVICE_MODELS_LOADER_FIXTURE_H_

#include <gtest/gtest.h>

#include <atomic>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "engine/threading/mutex.h"
#include "service/models/loader.h"
#include "service/models/repository_scan.h"
#include "tests/support/echo_repository.h"
#include "tests/support/fake_engine.h"

namespace tilewire::service {

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
    std::vector<ServedModel> found =
        ScanDirectory(directory_.string(), {.latest = latest_}).value();
    if (mode_ == ControlMode::kExplicit) {
      for (ServedModel& served : found) served.state = ModelState::kUnloaded;
    }
    models_ = std::make_unique<ModelRepository>(std::move(found));
    loader_ = std::make_unique<Loader>(
        &engine_, models_.get(), &dispatcher_, &admission_,
        Loader::Settings{.scan =
                             [this](const ScanScope& scope) {
                               ++scans_;
                               if (!scope.folder.empty()) {
                                 return ScanFolder(scope.folder, scope.model,
                                                   {.latest = latest_, .scope = scope});
                               }
                               return ScanDirectory(directory_.string(),
                                                    {.latest = latest_, .scope = scope});
                             },
                         .look_every = absl::Milliseconds(10),
                         .mode = mode_,
                         .unload_first = unload_first_,
                         .warm_up_first = warm_up_first,
                         .started = [this] { started_.Notify(); },
                         .changed = [this] { ++changes_; },
                         .memory = memory,
                         .trial = trial_,
                         .uploads = upload_folder_});
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
  // Tests may change these before Start().
  uint32_t latest_ = 0;
  ControlMode mode_ = ControlMode::kPoll;
  bool unload_first_ = false;
  const Trial* trial_ = nullptr;
  UploadFolder* upload_folder_ = nullptr;
  tilewire::testing::FakeEngine engine_;
  Dispatcher dispatcher_{&engine_.arena(), {}};
  Admission admission_{int64_t{1} << 30};
  std::unique_ptr<ModelRepository> models_;
  std::atomic<int> changes_{0}, scans_{0};
  threading::Notification started_;
  std::unique_ptr<Loader> loader_;  // last: ends before what it uses
};

}  // namespace tilewire::service

#endif  // TESTS_SERVICE_MODELS_LOADER_FIXTURE_H_
