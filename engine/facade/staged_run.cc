// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/staged_run.h"

#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/facade/step_laps.h"

namespace tilewire {
namespace {

using reader::Cut;
using reader::HeldTensor;
using reader::StagedTensor;
using reader::TensorId;

Dims ElementsKey(const network::Constant& known) {
  Dims key(known.ints.begin(), known.ints.end());
  for (float number : known.floats) {
    int32_t bits = 0;
    std::memcpy(&bits, &number, sizeof(bits));
    key.push_back(bits);
  }
  return key;
}

}  // namespace

Dims StagedRun::SizeKey(const StagedTensor& tensor) {
  Dims key = tensor.dims;
  key.push_back(2 * static_cast<int64_t>(tensor.type) + (tensor.is_integer ? 1 : 0));
  return key;
}

absl::Status StagedRun::Reserve(int64_t more) {
  int64_t bytes = more;
  for (const Scope* scope : scopes_) {
    bytes += scope->gathered_bytes;
    for (const auto& [id, held] : scope->held) bytes += static_cast<int64_t>(held.bytes->size());
  }
  if (bytes <= reserved_) return absl::OkStatus();
  const int64_t growth = bytes - std::exchange(reserved_, bytes);
  return options_.reserve ? options_.reserve(growth) : absl::OkStatus();
}

std::vector<runtime::InputBytes> StagedRun::Inputs(const PlannedStage& stage, Scope* scope) const {
  std::vector<runtime::InputBytes> inputs;
  scope->pieces.clear();
  for (const StagedTensor& input : stage.cut->inputs) {
    const AlignedBuffer& bytes = *scope->held.at(input.id).bytes;
    scope->pieces.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  for (size_t i = 0; i < scope->pieces.size(); ++i)
    inputs.push_back({&stage.plan->inputs[i].client.channels_first, {&scope->pieces[i], 1}});
  return inputs;
}

std::vector<runtime::InputBytes> StagedRun::LastInputs(const PlannedStage& last) {
  return Inputs(last, &model_);
}

absl::Status StagedRun::Execute(const PlannedStage& stage,
                                absl::Span<const runtime::InputBytes> inputs, Scope* scope) {
  const Cut& cut = *stage.cut;
  const runtime::Plan& plan = *stage.plan;
  std::vector<runtime::OutputBytes> outputs;
  int64_t bytes = plan.arena_bytes + plan.scratchpad_bytes;
  for (size_t i = 0; i < cut.outputs.size(); ++i) {
    const MemoryDesc& desc = plan.outputs[i].client.channels_first;
    outputs.push_back({static_cast<int>(i), &desc, AlignedBuffer()});
    bytes += desc.SizeBytes();
  }
  ABSL_RETURN_IF_ERROR(Reserve(bytes));
  StepLaps laps(plan, options_.longest_steps);
  const runtime::ExecutionContext context{
      .scratchpads = &shared_.scratchpads,
      .team = shared_.TeamFor(options_),
      .interrupted = &options_.interrupted,
      .laps = laps.laps(),
      .reorder_time = options_.reorder_time,
      .times = options_.is_counted ? stage.times.get() : nullptr};
  ABSL_RETURN_IF_ERROR(runtime::Execute(plan, inputs, absl::MakeSpan(outputs), context));
  laps.Keep();
  for (size_t i = 0; i < cut.outputs.size(); ++i) {
    const StagedTensor& tensor = cut.outputs[i];
    scope->held[tensor.id] = {tensor,
                              std::make_shared<const AlignedBuffer>(std::move(outputs[i].bytes))};
  }
  return absl::OkStatus();
}

absl::StatusOr<HeldTensor> StagedRun::Find(const Cut& cut, TensorId id, const Scope& scope) const {
  if (const network::ConstantPtr& constant = cut.tensors[id].constant; constant != nullptr) {
    ABSL_ASSIGN_OR_RETURN(const network::ConstantPtr known, network::InMemory(constant));
    return reader::AsTensor(*known, id);
  }
  const auto held = scope.held.find(id);
  if (held == scope.held.end()) return Internal("a tensor that no stage gives");
  return held->second;
}

absl::StatusOr<PlannedStagePtr> StagedRun::Next(const Cut& cut, StagePlans::Key* key,
                                                Scope* scope) {
  std::vector<StagedTensor> computed;
  Tensors kept;
  for (const reader::Node* node : cut.late) {
    std::vector<HeldTensor> results;
    if (node->op() == "Loop") {
      ABSL_ASSIGN_OR_RETURN(results, RunLoop(*node, cut, *key, scope));
    } else {
      for (const StagedTensor& input : reader::ReadBy(*node, cut))
        results.push_back(scope->held.at(input.id));
      ABSL_ASSIGN_OR_RETURN(results, source_.Compute(*node, cut, results, options_.interrupted));
    }
    for (HeldTensor& result : results) {
      computed.push_back(result.tensor);
      key->push_back(SizeKey(result.tensor));
      kept[result.tensor.id] = std::move(result);
    }
  }
  std::vector<network::ConstantPtr> known;
  for (TensorId id : cut.known) {
    known.push_back(reader::AsConstant(absl::StrCat("known", id), scope->held.at(id)));
    key->push_back(ElementsKey(*known.back()));
  }
  for (const StagedTensor& one : cut.kept) kept[one.id] = std::move(scope->held.at(one.id));
  scope->held = std::move(kept);
  return plans_.GetOrMake(*key, planning_, [&] {
    return source_.NextStage(reader::StartAfter(cut, computed, known), options_.interrupted);
  });
}

absl::StatusOr<PlannedStagePtr> StagedRun::Advance(PlannedStagePtr stage, StagePlans::Key key,
                                                   absl::Span<const runtime::InputBytes> first,
                                                   Scope* scope) {
  for (bool is_first = true;; is_first = false) {
    const bool is_last = stage->cut->is_last();
    if (is_last && stage->cut->graph.is_model) return stage;
    if (stage->plan != nullptr) {
      const std::vector<runtime::InputBytes> inputs =
          is_first && !first.empty() ? std::vector<runtime::InputBytes>(first.begin(), first.end())
                                     : Inputs(*stage, scope);
      ABSL_RETURN_IF_ERROR(Execute(*stage, inputs, scope));
    }
    if (is_last) return stage;
    ABSL_ASSIGN_OR_RETURN(stage, Next(*stage->cut, &key, scope));
  }
}

absl::StatusOr<PlannedStagePtr> StagedRun::UntilLast(PlannedStagePtr first,
                                                     const StagePlans::Key& key,
                                                     absl::Span<const runtime::InputBytes> inputs) {
  scopes_ = {&model_};
  return Advance(std::move(first), key, inputs, &model_);
}

}  // namespace tilewire
