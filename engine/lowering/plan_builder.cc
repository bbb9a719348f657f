// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan_builder.h"

#include <algorithm>
#include <utility>
#include <variant>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/memory_plan.h"
#include "engine/runtime/layouts.h"
#include "engine/runtime/reference_reason.h"
#include "engine/runtime/step_work.h"

namespace tilewire::runtime {
namespace {

using graph::FusedStep;
using graph::ValueId;

const std::vector<FusedStep>* FusedSteps(const graph::OperationParams& params) {
  if (const auto* convolution = std::get_if<graph::Convolution>(&params))
    return &convolution->fused;
  if (const auto* product = std::get_if<graph::InnerProduct>(&params)) return &product->fused;
  return nullptr;
}

std::vector<int> CountUses(const graph::Network& network) {
  std::vector<int> uses(network.values.size());
  for (const graph::Operation& operation : network.operations) {
    for (ValueId src : operation.srcs) ++uses[src];
    if (const std::vector<FusedStep>* fused = FusedSteps(operation.params)) {
      for (const FusedStep& step : *fused) {
        if (step.kind == FusedStep::Kind::kSum) ++uses[step.addend];
      }
    }
  }
  for (ValueId output : network.outputs) ++uses[output];
  return uses;
}

void AddRemark(absl::string_view remark, std::string* remarks) {
  absl::StrAppend(remarks, remarks->empty() ? "" : "; ", remark);
}

}  // namespace

PlanBuilder::PlanBuilder(const graph::Network& network, const LoweringContext& context)
    : network_(network),
      context_(context),
      places_(network.values.size()),
      remaining_uses_(CountUses(network)) {
  for (ValueId input : network.inputs)
    plan_->inputs.push_back({network.values[input].name, -1, {}});
}

absl::StatusOr<MemoryDesc> PlanBuilder::AnyDesc(ValueId id) const {
  return MemoryDesc::CreateAny(value(id).dims, value(id).type);
}

absl::StatusOr<std::shared_ptr<const Primitive>> PlanBuilder::Create(const OpDesc& desc,
                                                                     Attributes attributes) {
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(PrimitiveCache::Found found,
                        context_.cache->GetOrCreate(desc, attributes, context_.options));
  requests_.try_emplace(found.primitive.get(), PrimitiveRequest{desc, attributes, found.primitive});
  return std::move(found.primitive);
}

absl::StatusOr<PlanBuilder::Place> PlanBuilder::Home(ValueId id) {
  if (!IsUnplaced(id)) return places_[id].front();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                        PlainDesc(value(id).dims, value(id).type, /*channels_last=*/false));
  return InLayout(id, desc, "");
}

absl::StatusOr<PlanBuilder::Place> PlanBuilder::DenseHome(ValueId id, absl::string_view node) {
  ABSL_ASSIGN_OR_RETURN(const Place home, Home(id));
  if (home.desc.IsDense() && home.desc.offset0() == 0) return home;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutLike(home.desc, home.desc.dims()));
  return InLayout(id, desc, node);
}

absl::StatusOr<PlanBuilder::Place> PlanBuilder::InLayout(ValueId id, const MemoryDesc& desc,
                                                         absl::string_view node) {
  for (const Place& place : places_[id]) {
    if (SameMemory(place.desc, desc)) return Place{place.buffer, desc};
  }
  if (IsUnplaced(id)) {
    if (!absl::c_linear_search(network_.inputs, id)) {
      return absl::InternalError(
          absl::StrCat("value '", value(id).name, "' is read before it is computed"));
    }
    const Place place = NewPlace(desc);
    plan_->buffers[place.buffer].first = -1;
    PlanInput& input = InputOf(id);
    input.buffer = place.buffer;
    input.desc = desc;
    Bind(id, place);
    return place;
  }
  const Place home = places_[id].front();
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> reorder,
                        Create(ReorderDesc{home.desc, desc}));
  const Place place = NewPlace(desc);
  Emit(node, std::move(reorder), {{kArgSrc, home.buffer}, {kArgDst, place.buffer}},
       "another layout is wanted");
  Bind(id, place);
  return place;
}

bool PlanBuilder::IsDead(int buffer) const {
  const std::vector<ValueId>& values = buffer_values_[plan_->WholeOf(buffer)];
  if (plan_->buffers[buffer].constant != nullptr) return false;
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId id) { return remaining_uses_[id] == 0; });
}

PlanBuilder::Place PlanBuilder::NewPlace(const MemoryDesc& desc) {
  const int step = static_cast<int>(plan_->steps.size());
  plan_->buffers.push_back({.bytes = desc.SizeBytes(), .first = step, .last = step});
  buffer_values_.emplace_back();
  return {static_cast<int>(plan_->buffers.size()) - 1, desc};
}

PlanBuilder::Place PlanBuilder::ConstantPlace(const MemoryDesc& desc,
                                              std::shared_ptr<const AlignedBuffer> bytes) {
  const Place place = NewPlace(desc);
  PlanBuffer& buffer = plan_->buffers[place.buffer];
  buffer.bytes = 0;
  buffer.constant = bytes->data();
  plan_->constants.push_back(std::move(bytes));
  return place;
}

bool PlanBuilder::MayBePart(const Place& place) const {
  const PlanBuffer& buffer = plan_->buffers[place.buffer];
  const auto is_output = [this](ValueId id) { return absl::c_linear_search(network_.outputs, id); };
  return buffer.first >= 0 && buffer.constant == nullptr && buffer.part_of < 0 &&
         place.desc.offset0() == 0 && place.desc.SizeBytes() == buffer.bytes &&
         absl::c_none_of(buffer_values_[place.buffer], is_output);
}

void PlanBuilder::MakePart(int part, int whole, int64_t offset) {
  plan_->buffers[part].part_of = whole;
  plan_->buffers[part].part_offset = offset;
  std::vector<ValueId>& values = buffer_values_[part];
  buffer_values_[whole].insert(buffer_values_[whole].end(), values.begin(), values.end());
  values.clear();
}

void PlanBuilder::Bind(ValueId id, const Place& place) {
  places_[id].push_back(place);
  buffer_values_[plan_->WholeOf(place.buffer)].push_back(id);
}

Binding PlanBuilder::Constant(int arg, std::shared_ptr<const AlignedBuffer> bytes) {
  plan_->constants.push_back(bytes);
  return {arg, -1, bytes->data()};
}

void PlanBuilder::Emit(absl::string_view node, std::shared_ptr<const Primitive> primitive,
                       Bindings bindings, absl::string_view remark, const PostOps& fused) {
  const int step = static_cast<int>(plan_->steps.size());
  for (const Binding& binding : bindings) {
    if (binding.buffer >= 0) plan_->buffers[binding.buffer].last = step;
  }
  plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, primitive->info().scratchpad_bytes);
  std::string remarks(remark);
  if (IsReference(*primitive))
    AddRemark("reference, because " + WhyReference(*primitive), &remarks);
  const int64_t operations = OperationsOf(*primitive);
  const auto* check = dynamic_cast<const SourceCheck*>(primitive.get());
  plan_->steps.push_back({std::string(node), fused.ToString(), std::move(remarks),
                          std::move(primitive), std::move(bindings), operations, check});
}

PlanInput& PlanBuilder::InputOf(ValueId id) {
  const auto it = std::find(network_.inputs.begin(), network_.inputs.end(), id);
  return plan_->inputs[it - network_.inputs.begin()];
}

void PlanBuilder::AddInputVariant(ValueId id, const Primitive& primitive,
                                  std::shared_ptr<const Primitive> variant) {
  int step = static_cast<int>(plan_->steps.size()) - 1;
  while (plan_->steps[step].primitive.get() != &primitive) --step;
  plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, variant->info().scratchpad_bytes);
  const MemoryDesc& desc = variant->Desc(kArgSrc);
  AddRemark("or src " + desc.ToString(), &plan_->steps[step].remark);
  InputOf(id).variants.push_back({desc, step, std::move(variant)});
}

absl::Status PlanBuilder::AddOutput(ValueId id) {
  ABSL_ASSIGN_OR_RETURN(const Place home, Home(id));
  plan_->buffers[home.buffer].last = static_cast<int>(plan_->steps.size());
  PlanOutput output{value(id).name, home.buffer, home.desc, {}};
  for (const bool channels_last : {false, true}) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc,
                          PlainDesc(value(id).dims, value(id).type, channels_last));
    if (SameMemory(home.desc, desc)) continue;
    if (!output.reorders.empty() && output.reorders.back().desc == desc) continue;
    ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> reorder,
                          Create(ReorderDesc{home.desc, desc}));
    plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, reorder->info().scratchpad_bytes);
    output.reorders.push_back({desc, std::move(reorder)});
  }
  plan_->outputs.push_back(std::move(output));
  return absl::OkStatus();
}

void PlanBuilder::NoteOverwrittenInputs() {
  for (PlanInput& input : plan_->inputs) {
    for (const Step& step : plan_->steps) {
      input.overwritten |= absl::c_any_of(step.bindings, [&](const Binding& binding) {
        return binding.buffer == input.buffer && IsOutput(binding.arg);
      });
    }
  }
}

absl::StatusOr<std::shared_ptr<const Plan>> PlanBuilder::Finish() {
  for (ValueId output : network_.outputs) ABSL_RETURN_IF_ERROR(AddOutput(output));
  // An input that nobody reads is still taken from the request.
  for (ValueId input : network_.inputs) ABSL_RETURN_IF_ERROR(Home(input).status());
  NoteOverwrittenInputs();
  ABSL_RETURN_IF_ERROR(FuseChains(
      requests_, context_.bands,
      [this](const OpDesc& desc,
             const Attributes& attributes) -> absl::StatusOr<std::shared_ptr<const Primitive>> {
        ABSL_ASSIGN_OR_RETURN(PrimitiveCache::Found found,
                              context_.cache->GetOrCreate(desc, attributes, context_.options));
        return std::move(found.primitive);
      },
      plan_.get()));
  ABSL_ASSIGN_OR_RETURN(plan_->arena_bytes,
                        PlaceBuffers(absl::MakeSpan(plan_->buffers), context_.max_arena_bytes));
  return std::shared_ptr<const Plan>(std::move(plan_));
}

}  // namespace tilewire::runtime
