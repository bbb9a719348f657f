// SPDX-License-Identifier: Apache-2.0
//
// Files that are tried: each is written into a folder of the tuner's own, loaded as any model, and
// run on examples. The folder goes with this object. Thread-compatible.
#ifndef ENGINE_TUNING_TRIAL_RUNS_H_
#define ENGINE_TUNING_TRIAL_RUNS_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "absl/types/span.h"
#include "engine/base/precision.h"
#include "engine/engine.h"
#include "engine/model.h"
#include "engine/tuning/example_set.h"
#include "engine/tuning/output_error.h"

namespace tilewire::tuning {

absl::Duration MedianOf(std::vector<absl::Duration> times);  // of at least one

struct TrialOutputs {
  std::vector<OutputFloats> outputs;  // of each example
};

class TrialRuns {
 public:
  // `parent` is where the folder is made; empty: where the system has such folders. `set` must
  // outlive this. `stop` may be null. After `most_of_turns`, TimeInTurns() begins no further turn
  // than the first TimePlan::kLeastTurns.
  //   kInvalidArgument  the folder does not exist or takes no files
  static absl::StatusOr<std::unique_ptr<TrialRuns>> Create(Engine* engine, const ExampleSet* set,
                                                           const std::string& parent,
                                                           const std::atomic<bool>* stop,
                                                           absl::Duration most_of_turns);
  ~TrialRuns();

  // `precisions`, `rows` and `tries_rows` are those of LoadOptions. Errors: those of
  // reader::NewFile and Engine::LoadModel().
  absl::StatusOr<std::shared_ptr<const Model>> Load(
      const std::string& file, const std::map<std::string, Precision>& precisions = {},
      const std::map<std::string, std::string>& rows = {}, bool tries_rows = false) const;

  // One output of f32 of every example; `seen`, which may be empty, is told how many there are so
  // far. Errors: those of Model::Run(), kCancelled by `stop`.
  absl::StatusOr<TrialOutputs> Run(const Model& model, absl::Span<const int64_t> examples,
                                   int output, const std::function<void(int64_t)>& seen = {}) const;
  // All outputs of one example, to `take`.
  absl::Status RunAll(const Model& model, int64_t example,
                      const std::function<absl::Status(const OutputTensor&)>& take) const;
  // Median times of runs of each model on the first example of the choice, in turns of at least
  // `least` altogether, unless `most_of_turns` is over before. With one thread, times of the
  // process on its core.
  absl::StatusOr<std::vector<absl::Duration>> TimeInTurns(absl::Span<const Model* const> models,
                                                          absl::Duration least) const;
  absl::Status TimeInTurns(const Model& a, const Model& b, absl::Duration* of_a,
                           absl::Duration* of_b) const;
  // The dims of the inputs of the first example of the choice.
  std::vector<Dims> FirstDims() const;

 private:
  TrialRuns(Engine* engine, const ExampleSet* set, std::string folder,
            const std::atomic<bool>* stop, absl::Duration most_of_turns)
      : engine_(engine),
        set_(set),
        folder_(std::move(folder)),
        stop_(stop),
        most_of_turns_(most_of_turns) {}
  RunOptions Options() const;

  Engine* const engine_;
  const ExampleSet* const set_;
  const std::string folder_;
  const std::atomic<bool>* const stop_;
  const absl::Duration most_of_turns_;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_TRIAL_RUNS_H_
