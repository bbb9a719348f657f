// SPDX-License-Identifier: Apache-2.0
//
// An engine whose models are fake ones (fake_model.h), so that what the service does can be tested
// alone.
#ifndef TESTS_SUPPORT_FAKE_ENGINE_H_
#define TESTS_SUPPORT_FAKE_ENGINE_H_

#include <atomic>
#include <fstream>
#include <functional>
#include <memory>
#include <string>

#include "absl/strings/match.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "engine/threading/arena.h"
#include "tests/support/fake_model.h"

namespace tilewire::testing {

// Loads every file as a FakeModel, but those that contain "broken". One compute thread.
class FakeEngine final : public Engine, public PrimitiveEngine {
 public:
  FakeEngine() { options_.threads = options_.threads_per_request = 1; }

  // Called in every run; set before the first request.
  std::function<void()> on_run;
  // Called in every load; set before the first, for loads on one thread.
  std::function<void()> on_load;
  // Runs go on until they are interrupted.
  std::atomic<bool> endless{false};

  absl::StatusOr<std::shared_ptr<const Model>> LoadModel(const std::string& path,
                                                         const LoadOptions& options) override {
    ++loads_;
    if (on_load) on_load();
    if (options.between_steps) ABSL_RETURN_IF_ERROR(options.between_steps());
    loaded_precision_ = options.precision.value_or(options_.precision);
    std::string text;
    std::getline(std::ifstream(path), text);
    if (absl::StrContains(text, "broken")) {
      return absl::InvalidArgumentError(absl::StrCat(path, ": not an ONNX file"));
    }
    return std::make_shared<const FakeModel>(&on_run, &endless);
  }
  absl::StatusOr<PrimitiveCache::Found> GetPrimitive(const OpDesc&, const Attributes&) override {
    return absl::UnimplementedError("a fake engine has no primitives");
  }
  absl::StatusOr<PrimitiveTimes> ExecutePrimitive(const Primitive&,
                                                  absl::Span<const PrimitiveInput>,
                                                  absl::Span<PrimitiveOutput>,
                                                  const RunOptions&) override {
    return absl::UnimplementedError("a fake engine has no primitives");
  }
  CacheStatistics cache_statistics() const override { return {}; }
  Peak MeasurePeak() const override { return {}; }
  PrimitiveEngine& primitives() override { return *this; }
  threading::Arena& arena() override { return arena_; }
  std::shared_ptr<EngineShared> shared() override { return nullptr; }
  const EngineOptions& options() const override { return options_; }
  void BoundPooledMemory(int64_t bytes) override { pooled_bytes_ = bytes; }
  int64_t pooled_bytes() const { return pooled_bytes_; }
  // How many loads of files have begun.
  int loads() const { return loads_; }
  // The precision of the latest load.
  Precision loaded_precision() const { return loaded_precision_; }

 private:
  EngineOptions options_;
  std::atomic<int64_t> pooled_bytes_{0};
  std::atomic<int> loads_{0};
  std::atomic<Precision> loaded_precision_{Precision::kExact};
  threading::Arena arena_{1};
};

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_FAKE_ENGINE_H_
