// SPDX-License-Identifier: Apache-2.0
//
// Examples and specs for tunings of the residual model, and what is looked for in their results.
#ifndef TESTS_ENGINE_TUNING_TUNED_RESULTS_H_
#define TESTS_ENGINE_TUNING_TUNED_RESULTS_H_

#include <algorithm>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/match.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "engine/cpu/isa.h"
#include "engine/tuner.h"
#include "tests/engine/tuning/tuned_models.h"

namespace tilewire::testing {

// Made-up pictures, and examples that refer to them.
struct Examples {
  std::vector<std::vector<float>> numbers;
  std::vector<TuningExample> examples;
};

inline Examples MakeExamples(int count) {
  Examples made;
  for (int i = 0; i < count; ++i) made.numbers.push_back(MadeUp(kResidualInput, i + 1));
  for (const std::vector<float>& numbers : made.numbers)
    made.examples.push_back({{"x", ViewOf(numbers, kResidualInput)}});
  return made;
}

inline std::string WriteResidualModel() {
  std::string path = ::testing::TempDir() + "/to_be_tuned.onnx";
  WriteFile(path, ResidualModel().Serialize());
  return path;
}

inline TuningSpec SpecOf(const char* budget) {
  return TuningSpec(ErrorBudget::Parse(budget).value());
}

// Tune() with the time of the spec, or with as much more as a busy machine takes to have enough of
// it, or even room for all examples.
inline absl::StatusOr<TuningResult> TuneInTime(const std::string& path,
                                               const std::vector<TuningExample>& examples,
                                               TuningSpec spec, bool takes_all = false) {
  while (true) {
    auto result = Tune(&EngineOfTests(), path, examples, spec);
    const bool is_short =
        result.ok() ? takes_all && result->left_out > 0 : absl::IsDeadlineExceeded(result.status());
    if (!is_short || spec.time > absl::Minutes(2)) return result;
    spec.time = 2 * std::max(spec.time, absl::Seconds(1));
  }
}

// A tuning whose time, of which a second is the least, passes while all layers are int8 for the
// first time: that trial is the only one. A busy machine is given more time.
inline absl::StatusOr<TuningResult> TuneUntilTheTimePasses(
    const std::string& path, const std::vector<TuningExample>& examples, TuningSpec spec) {
  spec.time = absl::Nanoseconds(1);
  while (true) {
    const absl::Duration passes = std::max(spec.time, absl::Seconds(1));
    spec.progress = [passes](const TuningProgress& progress) {
      if (absl::StartsWith(progress.text, "all layers int8")) absl::SleepFor(passes);
    };
    auto result = Tune(&EngineOfTests(), path, examples, spec);
    if (!absl::IsDeadlineExceeded(result.status()) || passes > absl::Minutes(2)) return result;
    spec.time = 2 * passes;
  }
}

// The one that was taken; null: none.
inline const Finalist* ChosenOf(const TuningResult& result) {
  const auto chosen = std::find_if(result.finalists.begin(), result.finalists.end(),
                                   [](const Finalist& one) { return one.is_chosen; });
  return chosen == result.finalists.end() ? nullptr : &*chosen;
}

// Which precisions are taken depends on the times of the moment; an exact one is taken only where
// nothing was faster.
inline bool IsExactTheFastest(const TuningResult& result) {
  const Finalist* chosen = ChosenOf(result);
  return chosen != nullptr && chosen->name == "exact";
}

inline const Finalist* FinalistOf(const TuningResult& result, const std::string& name) {
  for (const Finalist& one : result.finalists) {
    if (one.name == name) return &one;
  }
  return nullptr;
}

inline int Int8Nodes(const TuningResult& result) {
  int count = 0;
  for (const TunedNode& node : result.nodes) count += node.precision == TunedPrecision::kInt8;
  return count;
}

inline bool HasBf16() { return cpu::BestIsa().Includes(cpu::Isa::kAvx512Bf16); }

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_TUNING_TUNED_RESULTS_H_
