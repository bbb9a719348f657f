// SPDX-License-Identifier: Apache-2.0
//
// LoadedModel::Explain(): describes a plan and takes the medians of timed runs.
#include <algorithm>
#include <cstring>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/facade/loaded_model.h"
#include "engine/jit/fma_peak.h"
#include "engine/runtime/executor.h"

namespace tilewire {
namespace {

// Without the gaps between the images of a tensor that is a part of a larger one.
int64_t OwnBytes(const MemoryDesc& desc) {
  if (desc.format_kind() != FormatKind::kBlocked || desc.HasCompensation()) return desc.SizeBytes();
  return desc.PaddedElementCount() * SizeOf(desc.data_type());
}

PlanTensor Describe(absl::string_view argument, const MemoryDesc& desc) {
  return {std::string(argument), desc.ToString(), OwnBytes(desc)};
}

std::vector<std::string> DumpsOf(const runtime::Step& step) {
  if (step.bands == nullptr) return step.primitive->info().creation.dumps;
  std::vector<std::string> dumps;
  for (const Primitive* primitive : step.bands->Primitives())
    absl::c_copy(primitive->info().creation.dumps, std::back_inserter(dumps));
  return dumps;
}

bool IsOfBytes(const MemoryDesc& desc) {
  return !desc.IsZero() && (desc.data_type() == DataType::kU8 || desc.data_type() == DataType::kS8);
}

// Empty of primitives that multiply no matrices.
absl::string_view PrecisionOf(const Primitive& primitive) {
  const PrimitiveInfo& info = primitive.info();
  if (info.operations == 0) return "";
  if (info.traits.precision != Precision::kExact) return PrecisionName(info.traits.precision);
  const bool is_int8 = IsOfBytes(primitive.Desc(kArgSrc)) && IsOfBytes(primitive.Desc(kArgWeights));
  return is_int8 ? "int8" : "exact";
}

// A chain of several precisions has all of them: "exact+int8".
std::string PrecisionOf(const runtime::Step& step) {
  if (step.bands == nullptr) return std::string(PrecisionOf(*step.primitive));
  std::set<absl::string_view> precisions;
  for (const Primitive* primitive : step.bands->Primitives())
    precisions.insert(PrecisionOf(*primitive));
  precisions.erase("");
  return absl::StrJoin(precisions, "+");
}

PlanStep Describe(const runtime::Step& step) {
  PlanStep described;
  described.node = step.node;
  described.precision = PrecisionOf(step);
  described.implementation = std::string(step.implementation());
  if (step.primitive != nullptr) {
    const PrimitiveInfo& info = step.primitive->info();
    described.is_reference = info.traits.is_reference;
    described.scratchpad_bytes = info.scratchpad_bytes;
    described.cycles = info.creation.cycles;
    for (const Refusal& refusal : info.creation.refusals)
      described.refusals.push_back({refusal.name, refusal.reason, refusal.cycles});
  }
  described.primitive =
      described.implementation.substr(0, described.implementation.find_last_of('/'));
  if (described.primitive == "runtime")  // what the runtime does itself
    described.primitive = described.implementation;
  for (const ArgDesc& arg : step.args())
    described.tensors.push_back(Describe(ArgName(arg.arg), arg.desc));
  described.fused = step.fused;
  described.remark = step.remark;
  described.operations = step.operations;
  described.dumps = DumpsOf(step);
  return described;
}

PlanStep Describe(const runtime::PlanInput& input) {
  PlanStep described;
  described.node = absl::StrCat("input ", input.name);
  described.implementation = "reorder/streaming";
  described.tensors.push_back(Describe("dst", input.desc));
  return described;
}

PlanStep Describe(const runtime::PlanOutput& output) {
  PlanStep described;
  described.node = absl::StrCat("output ", output.name);
  described.tensors.push_back(Describe("src", output.desc));
  for (const runtime::OutputReorder& way : output.reorders) {
    absl::StrAppend(&described.remark, described.remark.empty() ? "" : "; ", "to ",
                    way.desc.ToString(), " by ", way.reorder->name());
  }
  return described;
}

void Describe(const runtime::Plan& plan, Explanation* explanation) {
  for (const runtime::PlanInput& input : plan.inputs) explanation->steps.push_back(Describe(input));
  for (const runtime::Step& step : plan.steps) explanation->steps.push_back(Describe(step));
  for (const runtime::PlanOutput& output : plan.outputs)
    explanation->steps.push_back(Describe(output));
  explanation->activations_bytes = std::max(explanation->activations_bytes, plan.arena_bytes);
  explanation->scratchpad_bytes = std::max(explanation->scratchpad_bytes, plan.scratchpad_bytes);
}

// The end of a stage: nodes that are computed from elements, and elements that are waited for.
void DescribeCut(const PlannedStage& stage, Explanation* explanation) {
  for (const reader::Node* node : stage.cut->late) {
    explanation->steps.push_back({.node = node->name(), .implementation = "stage/late"});
    explanation->steps.back().remark =
        absl::StrCat(node->op(),
                     " is computed from elements; what reads it is planned for the "
                     "sizes that come out");
  }
  for (size_t i = 0; i < stage.cut->outputs.size(); ++i) {
    if (!absl::c_linear_search(stage.cut->known, stage.cut->outputs[i].id)) continue;
    explanation->steps.push_back(
        {.node = stage.plan->outputs[i].name, .implementation = "stage/known"});
    explanation->steps.back().remark =
        "its elements decide sizes; what depends on them is planned once they are known";
  }
}

// A request such as a client could send: every input and output in nchw. Values repeat with a
// period that is not a power of two.
struct MadeUpRequest {
  absl::Status Fill(const runtime::Plan& plan) {
    for (const runtime::PlanInput& input : plan.inputs) {
      const MemoryDesc& desc = input.client.channels_first;
      ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer, AlignedBuffer::Allocate(desc.SizeBytes()));
      if (desc.data_type() == DataType::kF32) {
        float* values = reinterpret_cast<float*>(buffer.data());
        for (int64_t i = 0; i < desc.ElementCount(); ++i)
          values[i] = static_cast<float>(i % 1009) / 1009 - 0.5f;
      } else {
        std::memset(buffer.data(), 0, buffer.size());  // indices must name elements
      }
      pieces.emplace_back(reinterpret_cast<const char*>(buffer.data()), buffer.size());
      buffers.push_back(std::move(buffer));
    }
    for (size_t i = 0; i < pieces.size(); ++i)
      inputs.push_back({&plan.inputs[i].client.channels_first, {&pieces[i], 1}});
    for (size_t i = 0; i < plan.outputs.size(); ++i) {
      outputs.push_back(
          {static_cast<int>(i), &plan.outputs[i].client.channels_first, AlignedBuffer()});
    }
    return absl::OkStatus();
  }

  std::vector<AlignedBuffer> buffers;
  std::vector<absl::string_view> pieces;
  std::vector<runtime::InputBytes> inputs;
  std::vector<runtime::OutputBytes> outputs;
};

absl::Status CheckInputBytes(const std::vector<Dims>& all, const std::vector<TensorSpec>& specs,
                             int64_t limit) {
  int64_t left = limit;
  for (size_t i = 0; i < all.size(); ++i) {
    const int64_t size = SizeOf(specs[i].type);
    const std::optional<int64_t> elements = ElementCount(all[i]);
    if (!elements || *elements > left / size) {
      return ResourceExhausted("the inputs have more than ", limit, " bytes");
    }
    left -= *elements * size;
  }
  return absl::OkStatus();
}

absl::Duration Median(std::vector<absl::Duration> times) {
  const auto middle = times.begin() + static_cast<int64_t>(times.size() / 2);
  std::nth_element(times.begin(), middle, times.end());
  return *middle;
}

// Sets the medians of rows and of whole runs from laps[run][row].
void SetTimes(const std::vector<std::vector<absl::Duration>>& laps, Explanation* explanation) {
  std::vector<absl::Duration> wholes;
  for (const std::vector<absl::Duration>& run : laps) {
    absl::Duration& whole = wholes.emplace_back();
    for (absl::Duration lap : run) whole += lap;
  }
  explanation->run = Median(std::move(wholes));
  for (size_t row = 0; row < explanation->steps.size(); ++row) {
    std::vector<absl::Duration> times;
    for (const std::vector<absl::Duration>& run : laps) times.push_back(run[row]);
    explanation->steps[row].time = Median(std::move(times));
  }
}

}  // namespace

absl::StatusOr<Explanation> LoadedModel::Explain(const ExplainOptions& options) const {
  std::vector<Dims> dims = options.dims;
  if (dims.empty()) {
    ABSL_ASSIGN_OR_RETURN(dims, DimsForBatch(options.batch));
  }
  ABSL_RETURN_IF_ERROR(CheckDims(dims, dims.size()));
  ABSL_RETURN_IF_ERROR(CheckInputBytes(dims, signature_.inputs, options.limits.max_output_bytes));
  ABSL_ASSIGN_OR_RETURN(const PlannedStagePtr stage, PlanFor(dims, {options.limits.interrupted}));
  Explanation explanation;
  explanation.threads = shared_->options.threads_per_request;
  if (stage->plan != nullptr) {
    Describe(*stage->plan, &explanation);
    if (options.runs > 0) ABSL_RETURN_IF_ERROR(Time(*stage->plan, options, &explanation));
  }
  if (stage->cut != nullptr) ABSL_RETURN_IF_ERROR(DescribeLater(*stage, options, &explanation));
  return explanation;
}

std::vector<LivePlan> LoadedModel::LiveProfile() const {
  const auto deciding = absl::c_count_if(
      signature_.inputs, [](const TensorSpec& input) { return input.decides_shapes; });
  const size_t first_key = signature_.inputs.size() + static_cast<size_t>(deciding);
  std::vector<LivePlan> all;
  for (StagePlans::Key& key : plans_.Keys()) {
    const PlannedStagePtr stage = plans_.Peek(key);
    if (stage == nullptr || stage->plan == nullptr) continue;
    LivePlan& live = all.emplace_back();
    live.is_later_stage = key.size() > first_key;
    key.resize(signature_.inputs.size());
    live.dims = std::move(key);
    Explanation described;
    Describe(*stage->plan, &described);
    live.steps = std::move(described.steps);
    const runtime::StepTimes::Sums sums = stage->times->Read();
    live.runs = sums.runs;
    for (size_t row = 0; row < live.steps.size(); ++row)
      live.steps[row].time = absl::Nanoseconds(sums.row_ns[row]);
  }
  return all;
}

absl::Status LoadedModel::DescribeLater(const PlannedStage& first, const ExplainOptions& options,
                                        Explanation* explanation) const {
  DescribeCut(first, explanation);
  reader::LaterStages later =
      source_->StagesAfterFirst({{}, first.cut}, options.limits.interrupted);
  int number = 1;
  for (reader::Stage& stage : later.stages) {
    const std::string name = absl::StrCat("stage ", ++number);
    const auto planned = plans_.MakeOnce(std::move(stage), {options.limits.interrupted});
    if (!planned.ok()) {
      later.status = planned.status();
      --number;
      break;
    }
    explanation->steps.push_back({.node = name, .implementation = "stage/made_up"});
    explanation->steps.back().remark = "planned for made-up sizes; a request is for its own";
    if ((*planned)->plan != nullptr) Describe(*(*planned)->plan, explanation);
    DescribeCut(**planned, explanation);
  }
  if (later.status.ok()) return absl::OkStatus();
  if (options.limits.interrupted) ABSL_RETURN_IF_ERROR(options.limits.interrupted());
  explanation->steps.push_back(
      {.node = absl::StrCat("stage ", number + 1), .implementation = "stage/unknown"});
  explanation->steps.back().remark =
      absl::StrCat("planned while a request runs; made-up sizes do not fit: ",
                   later.status.message().substr(0, 500));
  return absl::OkStatus();
}

absl::Status LoadedModel::Time(const runtime::Plan& plan, const ExplainOptions& options,
                               Explanation* explanation) const {
  if (options.limits.reserve) {
    ABSL_RETURN_IF_ERROR(options.limits.reserve(plan.arena_bytes + plan.scratchpad_bytes));
  }
  MadeUpRequest request;
  ABSL_RETURN_IF_ERROR(request.Fill(plan));
  ABSL_RETURN_IF_ERROR(runtime::CheckOutputBytes(request.outputs, options.limits.max_output_bytes));
  std::vector<std::vector<absl::Duration>> laps;
  for (int run = -1; run < options.runs; ++run) {
    std::vector<absl::Duration> times;
    const runtime::ExecutionContext context{.scratchpads = &shared_->scratchpads,
                                            .team = shared_->TeamFor(options.limits),
                                            .interrupted = &options.limits.interrupted,
                                            .laps = &times};
    ABSL_RETURN_IF_ERROR(
        runtime::Execute(plan, request.inputs, absl::MakeSpan(request.outputs), context));
    if (run >= 0) laps.push_back(std::move(times));
  }
  explanation->peak_gflops = jit::MeasureFmaPeak(shared_->options.max_isa);
  SetTimes(laps, explanation);
  return absl::OkStatus();
}

}  // namespace tilewire
