// SPDX-License-Identifier: Apache-2.0
//
// StagedRun: a Loop whose count or condition is computed, or whose body has stages. The body is
// planned once for each set of sizes of what it carries and reads; each run executes those plans.
#include <cstring>
#include <limits>
#include <utility>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/facade/staged_run.h"
#include "engine/onnx/stages/assumed_stages.h"

namespace tilewire {

using reader::Body;
using reader::Cut;
using reader::HeldTensor;
using reader::Node;
using reader::StagedTensor;

namespace {

// The only element of a tensor of integers or truth values.
absl::StatusOr<int64_t> OnlyNumber(const Node& loop, absl::string_view what,
                                   const HeldTensor& held) {
  if (!held.tensor.is_integer || ElementCount(held.tensor.dims) != 1)
    return loop.Invalid(what, " is not one integer or truth value");
  return reader::AsConstant("", held)->ints[0];
}

absl::StatusOr<HeldTensor> Finished(const Node& loop, size_t output, std::string bytes,
                                    const StagedTensor& tensor, int64_t runs) {
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(bytes.size()));
  if (!bytes.empty()) std::memcpy(buffer.data(), bytes.data(), bytes.size());
  StagedTensor whole = tensor;
  whole.id = loop.outputs[output];
  whole.dims.insert(whole.dims.begin(), runs);
  return HeldTensor{std::move(whole), std::make_shared<const AlignedBuffer>(std::move(buffer))};
}

}  // namespace

absl::StatusOr<int64_t> StagedRun::Number(const Node& loop, const Cut& cut, size_t input,
                                          int64_t absent, const Scope& scope) const {
  if (!loop.HasInput(input)) return absent;
  ABSL_ASSIGN_OR_RETURN(const HeldTensor held, Find(cut, loop.inputs[input], scope));
  return OnlyNumber(loop, input == 0 ? "the trip count" : "the condition", held);
}

absl::Status StagedRun::Gather(const Node& loop, const HeldTensor& result, Scope* scope,
                               Gathered* gathered) {
  const StagedTensor &one = result.tensor, &all = gathered->tensor;
  if (gathered->runs > 0 && (one.dims != all.dims || one.type != all.type))
    return loop.Invalid("a run gives ", DimsToString(one.dims), " after one that gave ",
                        DimsToString(all.dims), ", which cannot be gathered");
  gathered->tensor = one;
  ++gathered->runs;
  scope->gathered_bytes += static_cast<int64_t>(result.bytes->size());
  if (scope->gathered_bytes > kMostGathered)
    return loop.TooLarge(
        absl::StrCat("gathers more than ", kMostGathered, " bytes in ", gathered->runs, " runs"));
  ABSL_RETURN_IF_ERROR(Reserve(0));
  gathered->bytes.append(reinterpret_cast<const char*>(result.bytes->data()), result.bytes->size());
  return absl::OkStatus();
}

absl::StatusOr<StagedRun::HeldTensors> StagedRun::RunLoop(const Node& loop, const Cut& cut,
                                                          const StagePlans::Key& key,
                                                          Scope* scope) {
  ABSL_ASSIGN_OR_RETURN(const int64_t count,
                        Number(loop, cut, 0, std::numeric_limits<int64_t>::max(), *scope));
  ABSL_ASSIGN_OR_RETURN(int64_t goes_on, Number(loop, cut, 1, 1, *scope));
  // Nothing ends it before.
  if (!loop.HasInput(1) && count > kMostRuns)
    return loop.TooLarge(loop.HasInput(0)
                             ? absl::StrCat("runs ", count, " times; at most ", kMostRuns)
                             : "runs without end: it has neither a count nor a condition");
  HeldTensors carried;
  for (size_t i = 2; i < loop.inputs.size(); ++i) {
    if (!loop.HasInput(i)) return loop.Invalid("input ", i, " is missing");
    ABSL_ASSIGN_OR_RETURN(carried.emplace_back(), Find(cut, loop.inputs[i], *scope));
  }
  const size_t states = carried.size();
  const size_t gathers = loop.outputs.size() > states ? loop.outputs.size() - states : 0;
  std::vector<Gathered> gathered(gathers);
  int64_t run = 0;
  for (; run < count && goes_on != 0; ++run) {
    if (run == kMostRuns)
      return loop.TooLarge(absl::StrCat("runs more than ", kMostRuns, " times"));
    ABSL_ASSIGN_OR_RETURN(HeldTensors results, RunBody(loop, cut, key, *scope, run, carried));
    // Without the input, the body's condition means nothing.
    if (loop.HasInput(1)) {
      ABSL_ASSIGN_OR_RETURN(goes_on, OnlyNumber(loop, "the body's condition", results[0]));
    }
    for (size_t i = 0; i < gathers; ++i)
      ABSL_RETURN_IF_ERROR(Gather(loop, results[1 + states + i], scope, &gathered[i]));
    for (size_t i = 0; i < states; ++i) carried[i] = std::move(results[1 + i]);
  }
  if (run == 0 && gathers > 0) ABSL_RETURN_IF_ERROR(GatherNothing(loop, cut, carried, &gathered));
  HeldTensors outputs;
  for (size_t i = 0; i < loop.outputs.size(); ++i) {
    if (loop.outputs[i] == reader::kNoTensor) continue;
    if (i < states) {
      outputs.push_back(std::move(carried[i]));
      outputs.back().tensor.id = loop.outputs[i];
      continue;
    }
    Gathered& all = gathered[i - states];
    ABSL_ASSIGN_OR_RETURN(outputs.emplace_back(),
                          Finished(loop, i, std::move(all.bytes), all.tensor, all.runs));
  }
  scope->gathered_bytes = 0;
  return outputs;
}

absl::StatusOr<StagedRun::HeldTensors> StagedRun::RunBody(const Node& loop, const Cut& cut,
                                                          StagePlans::Key key, const Scope& outer,
                                                          int64_t run, const HeldTensors& carried) {
  std::vector<StagedTensor> states;
  for (const HeldTensor& one : carried) states.push_back(one.tensor);
  ABSL_ASSIGN_OR_RETURN(reader::StageStart start, reader::BodyStart(loop, cut, states));
  Scope inner;
  const network::ConstantPtr number = network::MakeInts("", {}, {run});
  key.push_back({reinterpret_cast<intptr_t>(&loop)});
  for (size_t i = 0; i < start.inputs.size(); ++i) {
    const StagedTensor& input = start.inputs[i];
    key.push_back(SizeKey(input));
    HeldTensor& held = inner.held[input.id];
    if (i == 0) {
      ABSL_ASSIGN_OR_RETURN(held, reader::AsTensor(*number, input.id, input.type));
    } else {
      held = i <= carried.size() ? carried[i - 1] : outer.held.at(input.id);
      held.tensor = input;
    }
  }
  scopes_.push_back(&inner);
  const absl::Cleanup leave = [this] { scopes_.pop_back(); };
  ABSL_ASSIGN_OR_RETURN(const PlannedStagePtr first, plans_.GetOrMake(key, planning_, [&] {
    return source_.NextStage(std::move(start), options_.interrupted);
  }));
  ABSL_ASSIGN_OR_RETURN(const PlannedStagePtr last, Advance(first, std::move(key), {}, &inner));
  HeldTensors results;
  for (reader::TensorId id : last->cut->graph.outputs) {
    ABSL_ASSIGN_OR_RETURN(results.emplace_back(), Find(*last->cut, id, inner));
  }
  return results;
}

absl::Status StagedRun::GatherNothing(const Node& loop, const Cut& cut, const HeldTensors& carried,
                                      std::vector<Gathered>* gathered) {
  std::vector<StagedTensor> states;
  for (const HeldTensor& one : carried) states.push_back(one.tensor);
  ABSL_ASSIGN_OR_RETURN(reader::StageStart start, reader::BodyStart(loop, cut, states));
  ABSL_ASSIGN_OR_RETURN(const reader::Stage stage,
                        source_.NextStage(std::move(start), options_.interrupted));
  if (!stage.cut->is_last())
    return loop.Unimplemented("gathers results whose size only a run would tell, and never runs");
  for (size_t i = 0; i < gathered->size(); ++i) {
    const reader::TensorId id = stage.cut->graph.outputs[1 + carried.size() + i];
    (*gathered)[i].tensor = reader::OutputOf(*stage.cut, id);
  }
  return absl::OkStatus();
}

}  // namespace tilewire
