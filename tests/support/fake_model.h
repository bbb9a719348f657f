// SPDX-License-Identifier: Apache-2.0
//
// A model that needs no primitive, so that what the service does can be tested alone. Inputs
// "image" [N,2,3,4] and "row" [N,5], outputs the same tensors under the names "image_out" and
// "row_out".
#ifndef TESTS_SUPPORT_FAKE_MODEL_H_
#define TESTS_SUPPORT_FAKE_MODEL_H_

#include <atomic>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/hash/hash.h"
#include "engine/base/status_macros.h"
#include "engine/engine.h"
#include "engine/explanation.h"
#include "engine/longest_steps.h"

namespace tilewire::testing {

// Calls `on_run` before each run, and runs on while `endless`. Thread-safe if `on_run` is.
class FakeModel final : public Model {
 public:
  static constexpr int64_t kHeldBytes = int64_t{10} << 20;
  static constexpr absl::Duration kReorderTime = absl::Milliseconds(7);  // of each run

  explicit FakeModel(const std::function<void()>* on_run,
                     const std::atomic<bool>* endless = nullptr)
      : on_run_(on_run), endless_(endless) {
    signature_.inputs = {{"image", DataType::kF32, {-1, 2, 3, 4}},
                         {"row", DataType::kF32, {-1, 5}}};
    signature_.outputs = {{"image_out", DataType::kF32, {-1, 2, 3, 4}},
                          {"row_out", DataType::kF32, {-1, 5}}};
  }

  int runs() const { return runs_.load(); }  // that have begun
  int counted_runs() const { return counted_runs_.load(); }
  const ModelSignature& signature() const override { return signature_; }
  // One step; as many microseconds as runs.
  absl::StatusOr<Explanation> Explain(const ExplainOptions& options) const override {
    if (*on_run_) (*on_run_)();
    if (options.limits.interrupted) ABSL_RETURN_IF_ERROR(options.limits.interrupted());
    const absl::Duration time = absl::Microseconds(options.runs);
    PlanStep step{.node = "copy",
                  .primitive = "reorder",
                  .implementation = "reorder/fake",
                  .fused = "relu:0",
                  .remark = DimsToString(options.dims[0]),
                  .operations = 4000,
                  .time = time};
    step.tensors = {{"src", "f32:1x2x3x4:nchw", 96}};
    return Explanation{.steps = {step},
                       .activations_bytes = 96,
                       .run = time,
                       .threads = 1,
                       .peak_gflops = options.runs > 0 ? 8.0 : 0.0};
  }
  // One plan with one step, of two runs.
  std::vector<LivePlan> LiveProfile() const override {
    PlanStep step{.node = "copy",
                  .primitive = "reorder",
                  .implementation = "reorder/fake",
                  .operations = 4000,
                  .time = absl::Microseconds(6)};
    return {{.dims = {{1, 2, 3, 4}, {1, 5}}, .runs = 2, .steps = {step}}};
  }
  std::optional<int64_t> PlannedOperations(absl::Span<const InputTensor>) const override {
    return 0;
  }
  uint64_t PlanHash(absl::Span<const InputTensor> inputs) const override {
    uint64_t hash = 0;
    for (const InputTensor& input : inputs) hash = absl::HashOf(hash, input.dims);
    return hash;
  }
  bool TimeVaries() const override { return false; }
  int64_t weights_bytes() const override { return 0; }
  int64_t HeldBytes() const override { return kHeldBytes; }
  absl::Status CheckFiles() const override { return absl::OkStatus(); }

  absl::StatusOr<std::vector<OutputTensor>> Run(absl::Span<const InputTensor> inputs,
                                                absl::Span<const OutputRequest> outputs,
                                                const RunOptions& options) const override {
    int64_t bytes = 0;
    for (const InputTensor& input : inputs) bytes += *ElementCount(input.dims) * sizeof(float);
    if (options.reserve) ABSL_RETURN_IF_ERROR(options.reserve(bytes));
    ++runs_;
    if (options.is_counted) ++counted_runs_;
    if (options.longest_steps != nullptr) {
      options.longest_steps->Add("copy", LongestSteps::Clock::now(), std::chrono::microseconds(3));
    }
    if (*on_run_) (*on_run_)();
    do {
      if (options.interrupted) ABSL_RETURN_IF_ERROR(options.interrupted());
    } while (endless_ != nullptr && *endless_);
    if (options.reorder_time != nullptr) *options.reorder_time += kReorderTime;
    std::vector<OutputTensor> results;
    for (const OutputRequest& wanted : outputs) {
      ABSL_ASSIGN_OR_RETURN(OutputTensor result, Copy(inputs[wanted.index], wanted));
      results.push_back(std::move(result));
    }
    return results;
  }

 private:
  // Element offset of (n, c, s) in a tensor of `channels` x `area`.
  static int64_t At(Layout layout, int64_t n, int64_t c, int64_t s, int64_t channels,
                    int64_t area) {
    return layout == Layout::kNchw ? (n * channels + c) * area + s : (n * area + s) * channels + c;
  }

  static absl::StatusOr<OutputTensor> Copy(const InputTensor& input, const OutputRequest& wanted) {
    std::string bytes;
    for (absl::string_view piece : input.pieces) bytes.append(piece.data(), piece.size());
    OutputTensor result{wanted.index, input.dims, wanted.layout, {}};
    ABSL_ASSIGN_OR_RETURN(result.bytes, AlignedBuffer::Allocate(bytes.size()));
    if (bytes.empty()) return result;
    const int64_t batch = input.dims[0], channels = input.dims[1];
    const int64_t area = static_cast<int64_t>(bytes.size() / sizeof(float)) / (batch * channels);
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t s = 0; s < area; ++s) {
          std::memcpy(result.bytes.data() + 4 * At(wanted.layout, n, c, s, channels, area),
                      bytes.data() + 4 * At(input.layout, n, c, s, channels, area), 4);
        }
      }
    }
    return result;
  }

  ModelSignature signature_;
  const std::function<void()>* on_run_;
  const std::atomic<bool>* endless_;
  mutable std::atomic<int> runs_{0}, counted_runs_{0};
};

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_FAKE_MODEL_H_
