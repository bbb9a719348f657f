// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/loaded_model.h"

#include <malloc.h>

#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/container/inlined_vector.h"
#include "absl/hash/hash.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/facade/plan_tensors.h"
#include "engine/facade/staged_run.h"
#include "engine/facade/step_laps.h"
#include "engine/onnx/deciding_inputs.h"
#include "engine/runtime/executor.h"
#include "engine/runtime/tensor_layout.h"
#include "spdlog/spdlog.h"

namespace tilewire {
namespace {

ModelSignature SignatureOf(const reader::OnnxModel& source) {
  return {source.inputs(), source.outputs()};
}

// Reference steps are correct but slow: logs which they are, and why no other implementation ran.
// Without AVX2 that is the same for all.
void WarnAboutReferences(const std::string& model, const runtime::Plan& plan, cpu::Isa isa) {
  const int shown = isa.Includes(cpu::Isa::kAvx2) ? 8 : 0;
  int count = 0;
  for (const runtime::Step& step : plan.steps) {
    if (step.primitive == nullptr || !step.primitive->info().traits.is_reference) continue;
    if (++count > shown) continue;
    spdlog::warn("{}: node '{}' runs {} into {}: {}", model, step.node,
                 std::string(step.primitive->name()), step.primitive->Desc(kArgDst).ToString(),
                 step.remark);
  }
  if (count > shown)
    spdlog::warn("{}: {} of {} steps run reference implementations", model, count,
                 plan.steps.size());
}

}  // namespace

LoadedModel::LoadedModel(std::shared_ptr<const reader::OnnxModel> source,
                         std::shared_ptr<EngineShared> shared, LayerOptions layers,
                         LoadedTuning tuning)
    : source_(std::move(source)),
      shared_(std::move(shared)),
      signature_(SignatureOf(*source_)),
      tuning_(std::move(tuning)),
      has_deciding_inputs_(absl::c_any_of(
          signature_.inputs, [](const TensorSpec& spec) { return spec.decides_shapes; })),
      plans_(shared_.get(), has_deciding_inputs_ || source_->has_cuts(), std::move(layers)) {}

absl::StatusOr<std::shared_ptr<const Model>> LoadedModel::Create(
    std::shared_ptr<const reader::OnnxModel> source, std::shared_ptr<EngineShared> shared,
    const LoadOptions& options, LoadedTuning tuning) {
  LayerOptions layers{options.precision.value_or(shared->options.precision),
                      options.node_precisions, options.node_rows, options.tries_rows};
  std::shared_ptr<LoadedModel> model(
      new LoadedModel(std::move(source), std::move(shared), std::move(layers), std::move(tuning)));
  if (const absl::Status unfit = model->source_->unfit(); !unfit.ok())
    spdlog::warn("{}: none of the shapes that were tried fits, so that requests may be refused: {}",
                 options.name, std::string(unfit.message()));
  const absl::StatusOr<std::vector<Dims>> dims = model->DimsForBatch(1);
  const bool has_one_plan =
      dims.ok() && !model->has_deciding_inputs_ && !model->source_->has_cuts();
  if ((options.tries_rows || !options.node_rows.empty()) && !has_one_plan) {
    return InvalidArgument(
        "rows of layers are chosen for one shape, and the inputs of the model leave more open than "
        "the batch");
  }
  if (dims.ok() && !model->has_deciding_inputs_) {
    const auto plan = model->PlanFor(*dims, options);
    // The only dimension of an input may be a length, for which 1 makes no sense.
    const bool may_be_length = absl::c_any_of(model->signature_.inputs, [](const TensorSpec& spec) {
      return spec.dims.size() == 1 && spec.dims[0] < 0;
    });
    if (!plan.ok() && !(may_be_length && absl::IsInvalidArgument(plan.status())))
      return plan.status();
    if (plan.ok() && (*plan)->plan != nullptr)
      WarnAboutReferences(options.name, *(*plan)->plan, model->shared_->options.max_isa);
  }
  // Returns the memory of the weights as they were in the file, which has been freed, to the
  // system.
  malloc_trim(0);
  return std::shared_ptr<const Model>(std::move(model));
}

absl::StatusOr<std::vector<Dims>> LoadedModel::DimsForBatch(int64_t batch) const {
  if (batch < 1) return InvalidArgument("a batch of ", batch);
  std::vector<Dims> all;
  for (const TensorSpec& input : signature_.inputs) {
    Dims dims = input.dims;
    if (!dims.empty() && dims[0] < 0) dims[0] = batch;
    if (input.any_rank) dims = {-1};
    for (int64_t size : dims) {
      if (size < 0) {
        return InvalidArgument("input '", input.name, "': shape ", ShapeText(input),
                               " has more open than the batch");
      }
    }
    all.push_back(std::move(dims));
  }
  return all;
}

// Is called for every request: the key's memory is kept. Bytes that do not fit the dims are refused
// when a plan is made for them.
void LoadedModel::SetKey(absl::Span<const InputTensor> inputs, PlanKey* key) const {
  key->resize(inputs.size());
  for (size_t i = 0; i < inputs.size(); ++i) (*key)[i] = inputs[i].dims;
  if (!has_deciding_inputs_) return;
  for (size_t i = 0; i < inputs.size() && i < signature_.inputs.size(); ++i) {
    if (!signature_.inputs[i].decides_shapes) continue;
    Dims& bytes = key->emplace_back();
    for (absl::string_view piece : inputs[i].pieces) {
      const size_t room = reader::kLargestDeciding * sizeof(int64_t) + 1 - bytes.size();
      for (char byte : piece.substr(0, room)) bytes.push_back(byte);
    }
  }
}

absl::StatusOr<PlannedStagePtr> LoadedModel::PlanFor(const PlanKey& key,
                                                     const LoadOptions& options) const {
  return plans_.GetOrMake(key, options, [&] {
    const size_t inputs = signature_.inputs.size();
    std::vector<std::string> deciding;
    for (size_t i = inputs; i < key.size(); ++i)
      deciding.emplace_back(key[i].begin(), key[i].end());
    return source_->FirstStage(absl::MakeSpan(key).first(inputs), deciding, options.between_steps);
  });
}

std::vector<std::vector<Dims>> LoadedModel::PlannedShapes() const {
  if (has_deciding_inputs_) return {};
  std::vector<PlanKey> keys = plans_.Keys();
  // The keys of later stages are longer.
  std::erase_if(keys, [&](const PlanKey& key) { return key.size() != signature_.inputs.size(); });
  return keys;
}

std::optional<int64_t> LoadedModel::PlannedOperations(absl::Span<const InputTensor> inputs) const {
  static thread_local PlanKey key;
  SetKey(inputs, &key);
  const PlannedStagePtr stage = plans_.Peek(key);
  if (stage == nullptr) return std::nullopt;
  return stage->plan != nullptr ? stage->plan->operations : 0;
}

uint64_t LoadedModel::PlanHash(absl::Span<const InputTensor> inputs) const {
  static thread_local PlanKey key;
  SetKey(inputs, &key);
  return absl::HashOf(key);
}

absl::Status LoadedModel::CheckDims(const PlanKey& key, size_t inputs) const {
  if (inputs != signature_.inputs.size()) {
    return InvalidArgument(inputs, " inputs given, the model takes ", signature_.inputs.size());
  }
  for (size_t i = 0; i < inputs; ++i) {
    const TensorSpec& spec = signature_.inputs[i];
    if (!spec.Allows(key[i])) {
      const bool open = absl::c_any_of(key[i], [](int64_t dim) { return dim < 0; });
      return InvalidArgument("input '", spec.name, "': shape ", DimsToString(key[i]),
                             " does not match ", ShapeText(spec),
                             open ? "; -1: open in the model, so give this shape" : "");
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<std::vector<OutputTensor>> LoadedModel::Run(absl::Span<const InputTensor> inputs,
                                                           absl::Span<const OutputRequest> outputs,
                                                           const RunOptions& options) const {
  thread_local PlanKey key;  // its memory serves the thread's next run
  SetKey(inputs, &key);
  ABSL_RETURN_IF_ERROR(CheckDims(key, inputs.size()));
  ABSL_RETURN_IF_ERROR(CheckBytes(signature_.inputs, inputs));
  absl::InlinedVector<OutputRequest, 4> requests(outputs.begin(), outputs.end());
  if (requests.empty()) {
    for (size_t i = 0; i < signature_.outputs.size(); ++i)
      requests.push_back({static_cast<int>(i), Layout::kNchw});
  }
  ABSL_ASSIGN_OR_RETURN(const PlannedStagePtr first, PlanFor(key, {options.interrupted}));
  if (first->cut == nullptr)
    return RunPlan(*first, DescribeInputs(*first->plan, inputs), requests, options, nullptr);
  ++shared_->staged_runs;
  StagedRun run(source_.get(), shared_.get(), &plans_, &options);
  AllInputBytes input_bytes;
  if (first->plan != nullptr) input_bytes = DescribeInputs(*first->plan, inputs);
  ABSL_ASSIGN_OR_RETURN(const PlannedStagePtr last, run.UntilLast(first, key, input_bytes));
  return RunPlan(*last, run.LastInputs(*last), requests, options, &run);
}

absl::StatusOr<std::vector<OutputTensor>> LoadedModel::RunPlan(
    const PlannedStage& last, absl::Span<const runtime::InputBytes> inputs,
    absl::Span<const OutputRequest> requests, const RunOptions& options, StagedRun* stages) const {
  const runtime::Plan& plan = *last.plan;
  ABSL_ASSIGN_OR_RETURN(AllOutputBytes output_bytes, DescribeOutputs(plan, requests));
  ABSL_RETURN_IF_ERROR(runtime::CheckOutputBytes(output_bytes, options.max_output_bytes));
  StepLaps laps(plan, options.longest_steps);
  const runtime::ExecutionContext context{.scratchpads = &shared_->scratchpads,
                                          .team = shared_->TeamFor(options),
                                          .interrupted = &options.interrupted,
                                          .allocate_output = &options.allocate_output,
                                          .laps = laps.laps(),
                                          .reorder_time = options.reorder_time,
                                          .times = options.is_counted ? last.times.get() : nullptr};
  const int64_t bytes = RunBytes(plan, output_bytes);
  if (stages != nullptr) {
    ABSL_RETURN_IF_ERROR(stages->Reserve(bytes));
  } else if (options.reserve) {
    ABSL_RETURN_IF_ERROR(options.reserve(bytes));
  }
  ABSL_RETURN_IF_ERROR(runtime::Execute(plan, inputs, absl::MakeSpan(output_bytes), context));
  laps.Keep();

  std::vector<OutputTensor> results;
  results.reserve(requests.size());
  for (size_t i = 0; i < requests.size(); ++i) {
    const int index = requests[i].index;
    const bool is_scalar = plan.outputs[index].is_scalar;
    results.push_back({index, is_scalar ? Dims() : output_bytes[i].desc->dims(), requests[i].layout,
                       std::move(output_bytes[i].bytes)});
  }
  return results;
}

}  // namespace tilewire
