// SPDX-License-Identifier: Apache-2.0
//
// One run of a model that is planned in stages (onnx/stages/cut.h): executes the plan of a stage,
// computes its late nodes, finds or makes the plan for what came out, and so on until the last one.
// A Loop runs its body's stages as often as its count and its condition say.
//
// Answers are as those of a whole plan: the same bits at any batch size, threads and load. Memory
// is bounded: what a run holds is asked for as it becomes known (RunOptions::reserve), before it is
// taken. Thread-compatible.
#ifndef ENGINE_FACADE_STAGED_RUN_H_
#define ENGINE_FACADE_STAGED_RUN_H_

#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/facade/stage_plans.h"
#include "engine/onnx/onnx_model.h"
#include "engine/onnx/stages/held_tensor.h"
#include "engine/runtime/executor.h"

namespace tilewire {

class StagedRun {
 public:
  // Runs of one loop, and bytes of the results that all runs of it gather.
  static constexpr int64_t kMostRuns = int64_t{1} << 20;
  static constexpr int64_t kMostGathered = int64_t{1} << 30;

  // Everything must outlive the run.
  StagedRun(const reader::OnnxModel* source, EngineShared* shared, StagePlans* plans,
            const RunOptions* options)
      : source_(*source),
        shared_(*shared),
        plans_(*plans),
        options_(*options),
        planning_{.between_steps = options->interrupted, .serial = options->serial} {}

  // Runs everything before the last stage, which is returned. `first` is the plan for `key`; its
  // inputs are a request's.
  //   kInvalidArgument    sizes or elements that a node cannot take
  //   kResourceExhausted  memory; a loop that runs too often or gathers too much
  //   what `options` returned
  absl::StatusOr<PlannedStagePtr> UntilLast(PlannedStagePtr first, const StagePlans::Key& key,
                                            absl::Span<const runtime::InputBytes> inputs);
  // The inputs of the last stage, which live as long as this object.
  std::vector<runtime::InputBytes> LastInputs(const PlannedStage& last);
  // Asks for the memory that the run holds now and `more`, as far as it was not asked for before.
  absl::Status Reserve(int64_t more);

 private:
  using Tensors = absl::flat_hash_map<reader::TensorId, reader::HeldTensor>;
  // The tensors of one graph between two of its stages.
  struct Scope {
    Tensors held;
    std::vector<absl::string_view> pieces;
    int64_t gathered_bytes = 0;  // by the Loop that runs in it
  };

  // Results of a loop's runs, one after the other along a new first dimension.
  struct Gathered {
    reader::StagedTensor tensor;  // of one run
    std::string bytes;
    int64_t runs = 0;
  };

  // The part of a key for a tensor that a plan takes.
  static Dims SizeKey(const reader::StagedTensor& tensor);
  // Executes stages up to the last one; of the model, before it, else with it.
  absl::StatusOr<PlannedStagePtr> Advance(PlannedStagePtr stage, StagePlans::Key key,
                                          absl::Span<const runtime::InputBytes> first,
                                          Scope* scope);
  std::vector<runtime::InputBytes> Inputs(const PlannedStage& stage, Scope* scope) const;
  absl::Status Execute(const PlannedStage& stage, absl::Span<const runtime::InputBytes> inputs,
                       Scope* scope);
  // Computes the late nodes of `cut`; the plan of the stage after it, whose key is `key` then.
  absl::StatusOr<PlannedStagePtr> Next(const reader::Cut& cut, StagePlans::Key* key, Scope* scope);
  absl::StatusOr<reader::HeldTensor> Find(const reader::Cut& cut, reader::TensorId id,
                                          const Scope& scope) const;

  // The outputs of a Loop (staged_loop.cc).
  using HeldTensors = std::vector<reader::HeldTensor>;
  absl::StatusOr<HeldTensors> RunLoop(const reader::Node& loop, const reader::Cut& cut,
                                      const StagePlans::Key& key, Scope* scope);
  // One run of its body: the condition, what is carried, and what is gathered.
  absl::StatusOr<HeldTensors> RunBody(const reader::Node& loop, const reader::Cut& cut,
                                      StagePlans::Key key, const Scope& outer, int64_t run,
                                      const HeldTensors& carried);
  absl::Status Gather(const reader::Node& loop, const reader::HeldTensor& result, Scope* scope,
                      Gathered* gathered);
  // The dims of what is gathered by a loop that never runs.
  absl::Status GatherNothing(const reader::Node& loop, const reader::Cut& cut,
                             const HeldTensors& carried, std::vector<Gathered>* gathered);
  // The only element of an input of the loop.
  absl::StatusOr<int64_t> Number(const reader::Node& loop, const reader::Cut& cut, size_t input,
                                 int64_t absent, const Scope& scope) const;

  const reader::OnnxModel& source_;
  EngineShared& shared_;
  StagePlans& plans_;
  const RunOptions& options_;
  const LoadOptions planning_;
  Scope model_;
  std::vector<const Scope*> scopes_;  // the model's, and those of bodies that are running
  int64_t reserved_ = 0;
};

}  // namespace tilewire

#endif  // ENGINE_FACADE_STAGED_RUN_H_
