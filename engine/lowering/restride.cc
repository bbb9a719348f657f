// SPDX-License-Identifier: Apache-2.0
//
// PlanBuilder::Respace: a tensor that is dense by itself gets the strides of a larger one of which
// it will be a part, after the steps that make and read it were chosen. All of it happens or none.
#include <algorithm>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/lowering/plan_builder.h"
#include "engine/runtime/layouts.h"

namespace tilewire::runtime {
namespace {

// `desc` with other strides, where it has those of `from` and begins where its buffer does.
absl::StatusOr<MemoryDesc> Respaced(const MemoryDesc& desc, const MemoryDesc& from,
                                    const Dims& strides) {
  const bool same = desc.rank() == from.rank() && desc.inner_blocks() == from.inner_blocks() &&
                    desc.offset0() == 0 && SameStrides(desc, from);
  if (same) return desc.WithStrides(strides);
  return absl::UnimplementedError(
      absl::StrCat(desc.ToString(), " has not the strides of ", from.ToString()));
}

}  // namespace

std::vector<bool> PlanBuilder::BuffersIn(int whole) const {
  std::vector<bool> inside(plan_->buffers.size(), false);
  inside[whole] = true;
  for (int i = whole; i-- > 0;) {  // a whole comes after its parts
    const int part_of = plan_->buffers[i].part_of;
    inside[i] = part_of >= 0 && inside[part_of];
  }
  return inside;
}

absl::StatusOr<std::shared_ptr<const Primitive>> PlanBuilder::RespacedPrimitive(
    const Primitive& primitive, const Bindings& bindings, const std::vector<bool>& inside,
    const MemoryDesc& from, const Dims& strides) {
  const auto request = requests_.find(&primitive);
  if (request == requests_.end())
    return absl::UnimplementedError(absl::StrCat(primitive.name(), " keeps its layouts"));
  std::vector<ArgDesc> changed;
  for (const Binding& binding : bindings) {
    if (binding.buffer < 0 || !inside[binding.buffer]) continue;
    ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, Respaced(primitive.Desc(binding.arg), from, strides));
    changed.push_back({binding.arg, std::move(desc)});
  }
  const PrimitiveRequest was = request->second;  // creating another moves the table
  return RequestAgain(was, changed, [this](const OpDesc& desc, const Attributes& attributes) {
    return Create(desc, attributes);
  });
}

absl::Status PlanBuilder::RespaceSteps(const std::vector<bool>& inside, const MemoryDesc& from,
                                       const Dims& strides) {
  std::vector<std::pair<std::shared_ptr<const Primitive>*, std::shared_ptr<const Primitive>>> now;
  const auto again = [&](std::shared_ptr<const Primitive>* primitive, const Bindings& bindings) {
    auto respaced = RespacedPrimitive(**primitive, bindings, inside, from, strides);
    if (respaced.ok()) now.emplace_back(primitive, *std::move(respaced));
    return respaced.status();
  };
  for (size_t i = 0; i < plan_->steps.size(); ++i) {
    Step& step = plan_->steps[i];
    const bool touched = absl::c_any_of(step.bindings, [&](const Binding& binding) {
      return binding.buffer >= 0 && inside[binding.buffer];
    });
    if (!touched) continue;
    ABSL_RETURN_IF_ERROR(again(&step.primitive, step.bindings));
    for (PlanInput& input : plan_->inputs) {
      for (InputVariant& variant : input.variants) {
        if (variant.step == static_cast<int>(i))
          ABSL_RETURN_IF_ERROR(again(&variant.primitive, step.bindings));
      }
    }
  }
  for (auto& [primitive, respaced] : now) {
    plan_->scratchpad_bytes = std::max(plan_->scratchpad_bytes, respaced->info().scratchpad_bytes);
    *primitive = std::move(respaced);
  }
  return absl::OkStatus();
}

absl::Status PlanBuilder::Respace(const Place& place, const Dims& strides) {
  const std::vector<bool> inside = BuffersIn(place.buffer);
  std::vector<std::pair<Place*, MemoryDesc>> now;
  for (const graph::ValueId id : buffer_values_[plan_->WholeOf(place.buffer)]) {
    for (Place& one : places_[id]) {
      if (!inside[one.buffer]) continue;
      ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, Respaced(one.desc, place.desc, strides));
      now.emplace_back(&one, std::move(desc));
    }
  }
  ABSL_RETURN_IF_ERROR(RespaceSteps(inside, place.desc, strides));
  for (auto& [one, desc] : now) {
    one->desc = std::move(desc);
    PlanBuffer& buffer = plan_->buffers[one->buffer];
    buffer.bytes = std::max(buffer.bytes, one->desc.SizeBytes());
  }
  return absl::OkStatus();
}

}  // namespace tilewire::runtime
