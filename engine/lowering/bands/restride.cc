// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/bands/restride.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

using runtime::SameStrides;

// `desc` with `strides` in place of those of `from`. Refuses a tensor with other strides than
// `from`, or one that does not begin where its buffer does.
absl::StatusOr<MemoryDesc> Restrided(const MemoryDesc& desc, const MemoryDesc& from,
                                     const Dims& strides) {
  const bool same = desc.rank() == from.rank() && desc.inner_blocks() == from.inner_blocks() &&
                    desc.offset0() == 0 && SameStrides(desc, from);
  if (same) return desc.WithStrides(strides);
  return Unimplemented(desc.ToString(), " does not have the strides of ", from.ToString());
}

// One call of Restride(). Changes are collected first and made together at the end.
class Restriding {
 public:
  Restriding(const Place& place, const Dims& strides, RequestPrimitive create, PlanDraft* draft)
      : from_(place.desc),
        strides_(strides),
        create_(create),
        draft_(*draft),
        inside_(BuffersIn(place.buffer)) {}

  absl::Status Run(int buffer) {
    ABSL_RETURN_IF_ERROR(FindPlaces(buffer));
    ABSL_RETURN_IF_ERROR(MoveParts(buffer));
    for (size_t i = 0; i < draft_.plan.steps.size(); ++i) {
      if (Touches(draft_.plan.steps[i])) ABSL_RETURN_IF_ERROR(RecreateStep(static_cast<int>(i)));
    }
    Apply();
    return absl::OkStatus();
  }

 private:
  using PrimitivePtr = std::shared_ptr<const Primitive>;

  // For each buffer, whether it is `whole` or a part of it.
  std::vector<bool> BuffersIn(int whole) const {
    std::vector<bool> inside(draft_.plan.buffers.size(), false);
    inside[whole] = true;
    for (int i = whole; i-- > 0;) {  // parts have lower indices than what they are parts of
      const int part_of = draft_.plan.buffers[i].part_of;
      inside[i] = part_of >= 0 && inside[part_of];
    }
    return inside;
  }

  bool IsInside(const Binding& binding) const {
    return binding.buffer >= 0 && inside_[binding.buffer];
  }
  bool Touches(const Step& step) const {
    return absl::c_any_of(step.bindings, [this](const Binding& one) { return IsInside(one); });
  }

  absl::Status FindPlaces(int buffer) {
    for (const ValueId id : draft_.buffer_values[draft_.plan.WholeOf(buffer)]) {
      for (Place& place : draft_.places[id]) {
        if (!inside_[place.buffer]) continue;
        ABSL_ASSIGN_OR_RETURN(MemoryDesc desc, Restrided(place.desc, from_, strides_));
        places_.emplace_back(&place, std::move(desc));
      }
    }
    return absl::OkStatus();
  }

  // Tensors inside begin elsewhere where the strides along its concatenation are other ones.
  absl::Status MoveParts(int whole) {
    for (int i = 0; i < whole; ++i) {
      if (!inside_[i]) continue;
      const int64_t bytes = BytesBefore(draft_.part_begins[i], from_, strides_);
      if (bytes % kPartAlignment != 0)
        return Unimplemented("a part would not begin on a line of memory");
      part_offsets_.emplace_back(i, bytes);
    }
    return absl::OkStatus();
  }

  // The primitive of a step, and those of the variants for other layouts of a request's input.
  absl::Status RecreateStep(int index) {
    Step& step = draft_.plan.steps[index];
    ABSL_RETURN_IF_ERROR(Recreate(step.bindings, &step.primitive));
    for (PlanInput& input : draft_.plan.inputs) {
      for (InputVariant& variant : input.variants) {
        if (variant.step == index)
          ABSL_RETURN_IF_ERROR(Recreate(step.bindings, &variant.primitive));
      }
    }
    return absl::OkStatus();
  }

  absl::Status Recreate(const Bindings& bindings, PrimitivePtr* primitive) {
    const auto found = draft_.requests.find(primitive->get());
    if (found == draft_.requests.end()) {
      return Unimplemented((*primitive)->name(), " cannot take other strides");
    }
    std::vector<ArgDesc> changed;
    for (const Binding& binding : bindings) {
      if (!IsInside(binding)) continue;
      ABSL_ASSIGN_OR_RETURN(MemoryDesc desc,
                            Restrided((*primitive)->Desc(binding.arg), from_, strides_));
      changed.push_back({binding.arg, std::move(desc)});
    }
    const PrimitiveRequest request = found->second;  // a copy: create_ may grow draft_.requests
    ABSL_ASSIGN_OR_RETURN(PrimitivePtr restrided, RequestAgain(request, changed, create_));
    primitives_.emplace_back(primitive, std::move(restrided));
    return absl::OkStatus();
  }

  void Apply() {
    for (auto& [primitive, restrided] : primitives_) {
      draft_.plan.scratchpad_bytes =
          std::max(draft_.plan.scratchpad_bytes, restrided->info().scratchpad_bytes);
      *primitive = std::move(restrided);
    }
    for (const auto& [buffer, offset] : part_offsets_)
      draft_.plan.buffers[buffer].part_offset = offset;
    for (auto& [place, desc] : places_) {
      place->desc = std::move(desc);
      PlanBuffer& buffer = draft_.plan.buffers[place->buffer];
      buffer.bytes = std::max(buffer.bytes, place->desc.SizeBytes());
    }
  }

  const MemoryDesc from_;
  const Dims& strides_;
  const RequestPrimitive create_;
  PlanDraft& draft_;
  const std::vector<bool> inside_;  // per buffer
  std::vector<std::pair<Place*, MemoryDesc>> places_;
  std::vector<std::pair<int, int64_t>> part_offsets_;  // by buffer
  std::vector<std::pair<PrimitivePtr*, PrimitivePtr>> primitives_;
};

}  // namespace

absl::Status Restride(const Place& place, const Dims& strides, RequestPrimitive create,
                      PlanDraft* draft) {
  return Restriding(place, strides, create, draft).Run(place.buffer);
}

}  // namespace tilewire::lowering
