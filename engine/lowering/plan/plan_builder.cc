// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/plan_builder.h"

#include <algorithm>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/bands/restride.h"
#include "engine/lowering/plan/memory_plan.h"
#include "engine/runtime/plan_check.h"
#include "engine/runtime/refusals.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

void AddRemark(absl::string_view remark, std::string* remarks) {
  absl::StrAppend(remarks, remarks->empty() ? "" : "; ", remark);
}

}  // namespace

PlanBuilder::PlanBuilder(const network::Network& network, ValueFacts facts,
                         const LoweringContext& context)
    : network_(network),
      context_(context),
      remaining_uses_(std::move(facts.uses)),
      is_bf16_(std::move(facts.is_bf16)),
      is_added_(network.values.size(), false) {
  draft_.places.resize(network.values.size());
  for (ValueId input : network.inputs)
    draft_.plan.inputs.push_back({network.values[input].name, -1, {}});
}

absl::StatusOr<MemoryDesc> PlanBuilder::RowMajorDesc(ValueId id) const {
  return runtime::PlainDesc(value(id).dims, value(id).type, /*channels_last=*/false);
}

absl::StatusOr<PrimitiveCache::Found> PlanBuilder::Find(const OpDesc& desc,
                                                        const Attributes& attributes,
                                                        absl::string_view only) {
  CreateOptions options = context_.options;
  options.only = only;
  return context_.cache->GetOrCreate(desc, attributes, options);
}

absl::StatusOr<std::shared_ptr<const Primitive>> PlanBuilder::Create(const OpDesc& desc,
                                                                     Attributes attributes,
                                                                     absl::string_view only) {
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  ABSL_ASSIGN_OR_RETURN(PrimitiveCache::Found found, Find(desc, attributes, only));
  draft_.requests.try_emplace(found.primitive.get(),
                              PrimitiveRequest{desc, attributes, found.primitive});
  return std::move(found.primitive);
}

absl::StatusOr<Place> PlanBuilder::Home(ValueId id) {
  if (!IsUnplaced(id)) return draft_.places[id].front();
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, RowMajorDesc(id));
  return InLayout(id, desc, "");
}

absl::StatusOr<Place> PlanBuilder::DenseHome(ValueId id, absl::string_view node) {
  ABSL_ASSIGN_OR_RETURN(const Place home, Home(id));
  if (home.desc.IsDense() && home.desc.offset0() == 0) return home;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, runtime::LayoutLike(home.desc, home.desc.dims()));
  return InLayout(id, desc, node);
}

absl::StatusOr<Place> PlanBuilder::InLayout(ValueId id, const MemoryDesc& desc,
                                            absl::string_view node) {
  for (const Place& place : draft_.places[id]) {
    if (runtime::SameMemory(place.desc, desc)) return Place{place.buffer, desc};
  }
  if (IsUnplaced(id)) {
    ABSL_ASSIGN_OR_RETURN(const Place placed, PlaceInput(id, desc));
    if (runtime::SameMemory(placed.desc, desc)) return Place{placed.buffer, desc};
  }
  const Place home = draft_.places[id].front();
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> reorder,
                        Create(ReorderDesc{home.desc, desc}));
  const Place place = NewPlace(desc);
  Emit(node, std::move(reorder), {{kArgSrc, home.buffer}, {kArgDst, place.buffer}},
       "another layout is wanted");
  Bind(id, place);
  return place;
}

const network::Parameter* PlanBuilder::ParameterOf(ValueId id) const {
  const auto found = absl::c_find_if(
      network_.parameters, [id](const network::Parameter& one) { return one.value == id; });
  return found == network_.parameters.end() ? nullptr : &*found;
}

absl::StatusOr<Place> PlanBuilder::PlaceInput(ValueId id, const MemoryDesc& desc) {
  if (const network::Parameter* parameter = ParameterOf(id); parameter != nullptr)
    return PlaceParameter(*parameter, desc);
  if (!absl::c_linear_search(network_.inputs, id)) {
    return Internal("value '", value(id).name, "' is read before it is computed");
  }
  const Place place = NewPlace(desc);
  draft_.plan.buffers[place.buffer].first = -1;
  ABSL_ASSIGN_OR_RETURN(PlanInput* const input, InputOf(id));
  input->buffer = place.buffer;
  input->desc = desc;
  Bind(id, place);
  return place;
}

absl::StatusOr<Place> PlanBuilder::PlaceParameter(const network::Parameter& parameter,
                                                  const MemoryDesc& desc) {
  if (context_.parameters == nullptr) return Internal("a network with parameters without a store");
  runtime::ParameterStore& store = *context_.parameters;
  const Dims& dims = value(parameter.value).dims;
  ABSL_ASSIGN_OR_RETURN(const int index, store.Add(parameter.name, dims, parameter.initial));
  if (store.Home(index).IsZero()) {
    const bool may_be_home = !desc.IsOpaque() && desc.data_type() == DataType::kF32 &&
                             desc.IsDense() && desc.offset0() == 0;
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, RowMajorDesc(parameter.value));
    ABSL_RETURN_IF_ERROR(store.Settle(index, may_be_home ? desc : plain));
  }
  const Place place = NewPlace(store.Home(index));
  PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  buffer.first = -1;
  buffer.persistent = runtime::ParameterStore::ValueBuffer(index);
  draft_.plan.has_persistent_buffers = true;
  Bind(parameter.value, place);
  return place;
}

bool PlanBuilder::MayOverwrite(const Place& place) const {
  const PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  if (buffer.persistent >= 0) return false;
  const bool is_of_request = buffer.first < 0 && place.desc.IsPlain();
  if (buffer.constant != nullptr || is_of_request) return false;
  const std::vector<ValueId>& values = draft_.buffer_values[draft_.plan.WholeOf(place.buffer)];
  return std::all_of(values.begin(), values.end(),
                     [&](ValueId id) { return remaining_uses_[id] == 0; });
}

bool PlanBuilder::MayAddTo(const Place& place, absl::Span<const ValueId> terms) const {
  const PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  if (buffer.first < 0 || buffer.persistent >= 0 || buffer.constant != nullptr) return false;
  const bool are_here = absl::c_all_of(terms, [&](ValueId id) {
    return draft_.places[id].size() == 1 && draft_.places[id].front().buffer == place.buffer &&
           remaining_uses_[id] == 1;
  });
  const auto is_dead_or_term = [&](ValueId id) {
    return remaining_uses_[id] == 0 || absl::c_linear_search(terms, id);
  };
  return are_here &&
         absl::c_all_of(draft_.buffer_values[draft_.plan.WholeOf(place.buffer)], is_dead_or_term);
}

Place PlanBuilder::NewPlace(const MemoryDesc& desc) {
  const int step = static_cast<int>(draft_.plan.steps.size());
  draft_.plan.buffers.push_back({.bytes = desc.SizeBytes(), .first = step, .last = step});
  draft_.buffer_values.emplace_back();
  draft_.part_begins.emplace_back();
  return {static_cast<int>(draft_.plan.buffers.size()) - 1, desc};
}

Place PlanBuilder::ConstantPlace(const MemoryDesc& desc,
                                 std::shared_ptr<const AlignedBuffer> bytes) {
  const Place place = NewPlace(desc);
  PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  buffer.bytes = 0;
  buffer.constant = bytes->data();
  draft_.plan.constants.push_back(std::move(bytes));
  return place;
}

bool PlanBuilder::MayBePart(const Place& place) const {
  const PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  const auto is_output = [this](ValueId id) { return absl::c_linear_search(network_.outputs, id); };
  return buffer.first >= 0 && buffer.constant == nullptr && buffer.part_of < 0 &&
         place.desc.offset0() == 0 && place.desc.SizeBytes() == buffer.bytes &&
         absl::c_none_of(draft_.buffer_values[place.buffer], is_output);
}

void PlanBuilder::MakePart(int part, const Place& whole, const PartBegin& begin) {
  draft_.plan.buffers[part].part_of = whole.buffer;
  draft_.plan.buffers[part].part_offset = BytesBefore(begin, whole.desc, whole.desc.strides());
  draft_.part_begins[part] = begin;
  std::vector<ValueId>& values = draft_.buffer_values[part];
  std::vector<ValueId>& all = draft_.buffer_values[whole.buffer];
  all.insert(all.end(), values.begin(), values.end());
  values.clear();
}

void PlanBuilder::Bind(ValueId id, const Place& place) {
  draft_.places[id].push_back(place);
  draft_.buffer_values[draft_.plan.WholeOf(place.buffer)].push_back(id);
}

Binding PlanBuilder::Constant(int arg, std::shared_ptr<const AlignedBuffer> bytes) {
  draft_.plan.constants.push_back(bytes);
  return {arg, -1, bytes->data()};
}

void PlanBuilder::Emit(absl::string_view node, std::shared_ptr<const Primitive> primitive,
                       Bindings bindings, absl::string_view remark, const PostOps& fused) {
  const int step = static_cast<int>(draft_.plan.steps.size());
  for (const Binding& binding : bindings) {
    if (binding.buffer >= 0) draft_.plan.buffers[binding.buffer].last = step;
  }
  ReserveScratchpad(*primitive);
  std::string remarks(remark);
  if (primitive->info().traits.is_reference)
    AddRemark("reference, because " + runtime::RefusalsText(*primitive), &remarks);
  const int64_t operations = primitive->info().operations;
  draft_.plan.steps.push_back({.node = std::string(node),
                               .fused = fused.ToString(),
                               .remark = std::move(remarks),
                               .primitive = std::move(primitive),
                               .bands = nullptr,
                               .bindings = std::move(bindings),
                               .operations = operations});
}

absl::StatusOr<PlanInput*> PlanBuilder::InputOf(ValueId id) {
  const auto it = std::find(network_.inputs.begin(), network_.inputs.end(), id);
  if (it == network_.inputs.end()) return Internal("'", value(id).name, "' is not an input");
  return &draft_.plan.inputs[it - network_.inputs.begin()];
}

absl::Status PlanBuilder::AddInputVariant(ValueId id, const Primitive& primitive,
                                          std::shared_ptr<const Primitive> variant) {
  ABSL_ASSIGN_OR_RETURN(PlanInput* const input, InputOf(id));
  int64_t readers = 0;
  int step = -1;
  for (size_t i = 0; i < draft_.plan.steps.size(); ++i) {
    const Step& one = draft_.plan.steps[i];
    if (one.primitive.get() == &primitive) step = static_cast<int>(i);
    readers += absl::c_any_of(
        one.bindings, [&](const Binding& binding) { return binding.buffer == input->buffer; });
  }
  if (step < 0 || readers != 1) return Internal(readers, " steps read '", value(id).name, "'");
  ReserveScratchpad(*variant);
  const MemoryDesc& desc = variant->Desc(kArgSrc);
  AddRemark("or src " + desc.ToString(), &draft_.plan.steps[step].remark);
  input->variants.push_back({desc, step, std::move(variant), /*bands=*/nullptr});
  return absl::OkStatus();
}

absl::Status PlanBuilder::AddOutput(ValueId id) {
  ABSL_ASSIGN_OR_RETURN(const Place home, Home(id));
  draft_.plan.buffers[home.buffer].last = static_cast<int>(draft_.plan.steps.size());
  PlanOutput output{value(id).name, home.buffer, home.desc, {}, {}, /*is_scalar=*/false};
  ABSL_ASSIGN_OR_RETURN(output.client, runtime::MakeClientDescs(value(id).dims, value(id).type));
  for (const MemoryDesc* desc : {&output.client.channels_first, &output.client.channels_last}) {
    if (desc->SizeBytes() == 0 || runtime::SameMemory(home.desc, *desc)) continue;
    if (!output.reorders.empty() && output.reorders.back().desc == *desc) continue;
    ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Primitive> reorder,
                          Create(ReorderDesc{home.desc, *desc}));
    ReserveScratchpad(*reorder);
    output.reorders.push_back({*desc, std::move(reorder)});
  }
  draft_.plan.outputs.push_back(std::move(output));
  return absl::OkStatus();
}

absl::Status PlanBuilder::KeepGradients() {
  for (const network::Parameter& parameter : network_.parameters) {
    if (parameter.gradient != network::kNoValue) ABSL_RETURN_IF_ERROR(KeepGradient(parameter));
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::KeepGradient(const network::Parameter& parameter) {
  ABSL_RETURN_IF_ERROR(Home(parameter.value).status());  // so that it has one
  runtime::ParameterStore& store = *context_.parameters;
  const int index = store.Find(parameter.name);
  const MemoryDesc home = store.Home(index);
  ABSL_RETURN_IF_ERROR(store.KeepGradient(index));
  ABSL_ASSIGN_OR_RETURN(Place place, InLayout(parameter.gradient, home, parameter.name));
  if (!MayPersist(place, home)) {
    ABSL_ASSIGN_OR_RETURN(auto copy, Create(ReorderDesc{place.desc, home}));
    const Place apart = NewPlace(home);
    Emit(parameter.name, std::move(copy), {{kArgSrc, place.buffer}, {kArgDst, apart.buffer}},
         "a gradient that stays after the run");
    place = apart;
  }
  PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  buffer.last = static_cast<int>(draft_.plan.steps.size());
  buffer.persistent = runtime::ParameterStore::GradientBuffer(index);
  return absl::OkStatus();
}

// A buffer of its own that a step writes.
bool PlanBuilder::MayPersist(const Place& place, const MemoryDesc& home) const {
  const PlanBuffer& buffer = draft_.plan.buffers[place.buffer];
  return buffer.first >= 0 && buffer.constant == nullptr && buffer.part_of < 0 &&
         buffer.persistent < 0 && buffer.bytes == home.SizeBytes();
}

void PlanBuilder::NoteOverwrittenInputs() {
  for (PlanInput& input : draft_.plan.inputs) {
    for (const Step& step : draft_.plan.steps) {
      input.overwritten |= absl::c_any_of(step.bindings, [&](const Binding& binding) {
        return binding.buffer == input.buffer && IsOutput(PropKind::kForwardInference, binding.arg);
      });
    }
  }
}

void PlanBuilder::ReserveScratchpad(const Primitive& primitive) {
  draft_.plan.scratchpad_bytes =
      std::max(draft_.plan.scratchpad_bytes, primitive.info().scratchpad_bytes);
}

absl::Status PlanBuilder::Restride(const Place& place, const Dims& strides) {
  return lowering::Restride(
      place, strides,
      [this](const OpDesc& desc, const Attributes& attributes, absl::string_view only) {
        return Create(desc, attributes, only);
      },
      &draft_);
}

absl::StatusOr<std::shared_ptr<const Plan>> PlanBuilder::Finish() {
  ABSL_RETURN_IF_ERROR(KeepGradients());
  for (ValueId output : network_.outputs) ABSL_RETURN_IF_ERROR(AddOutput(output));
  for (size_t i = 0; i < network_.output_dims.size(); ++i)
    draft_.plan.outputs[i].is_scalar = network_.output_dims[i].empty();
  // An input that no operation reads is taken from the request all the same.
  for (ValueId input : network_.inputs) {
    ABSL_RETURN_IF_ERROR(Home(input).status());
    ABSL_ASSIGN_OR_RETURN(PlanInput* const planned, InputOf(input));
    ABSL_ASSIGN_OR_RETURN(planned->client,
                          runtime::MakeClientDescs(value(input).dims, value(input).type));
  }
  NoteOverwrittenInputs();
  ABSL_RETURN_IF_ERROR(FuseBands(
      draft_.requests, context_.bands,
      [this](const OpDesc& desc, const Attributes& attributes,
             absl::string_view only) -> absl::StatusOr<std::shared_ptr<const Primitive>> {
        ABSL_ASSIGN_OR_RETURN(PrimitiveCache::Found found, Find(desc, attributes, only));
        return std::move(found.primitive);
      },
      &draft_.plan));
  ABSL_ASSIGN_OR_RETURN(draft_.plan.arena_bytes, PlaceBuffers(absl::MakeSpan(draft_.plan.buffers),
                                                              context_.max_arena_bytes));
  for (const Step& step : draft_.plan.steps) draft_.plan.operations += step.operations;
  ABSL_RETURN_IF_ERROR(runtime::CheckPlan(draft_.plan));
  return std::make_shared<const Plan>(std::move(draft_.plan));
}

}  // namespace tilewire::lowering
