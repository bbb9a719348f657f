// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/dropout_masks.h"

#include "engine/base/status_macros.h"
#include "engine/training/dropout.h"

namespace tilewire {

absl::Status DropoutMasks::Draw(absl::Span<const PlannedMask> masks, uint64_t seed, int64_t update,
                                const threading::Team& team, std::vector<InputTensor>* inputs) {
  elements_.resize(masks.size());
  for (size_t i = 0; i < masks.size(); ++i) {
    const network::DropoutMask& mask = masks[i].mask;
    const Dims& dims = masks[i].dims;
    const int64_t count = *ElementCount(dims);
    AlignedBuffer& buffer = elements_[i];
    if (buffer.size() != count * sizeof(float)) {
      ABSL_ASSIGN_OR_RETURN(buffer, AlignedBuffer::Allocate(count * sizeof(float)));
    }
    auto* const elements = reinterpret_cast<float*>(buffer.data());
    training::FillMask({.ratio = mask.ratio,
                        .seed = mask.seed.value_or(seed),
                        .node = mask.node,
                        .update = update,
                        .images = dims[0]},
                       absl::MakeSpan(elements, count), team);
    const absl::string_view bytes(reinterpret_cast<const char*>(elements), buffer.size());
    inputs->push_back({dims, Layout::kNchw, {bytes}});
  }
  return absl::OkStatus();
}

}  // namespace tilewire
