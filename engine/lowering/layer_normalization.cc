// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

// In row-major order: the generated code wants the elements that it normalizes together to be
// neighbours in memory. The primitive takes scale and shift as one tensor, one after the other.
absl::Status LowerLayerNormalization(const graph::LayerNormalization& norm,
                                     OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.RowMajor(context.src()));
  const bool scales = !norm.scale.empty();
  ABSL_ASSIGN_OR_RETURN(
      auto primitive,
      context.Create(LayerNormalizationDesc{
          .src = src.desc, .dst = src.desc, .epsilon = norm.epsilon, .use_scale_shift = scales}));
  runtime::Bindings weights;
  if (scales) {
    std::vector<float> both = norm.scale;
    both.insert(both.end(), norm.shift.begin(), norm.shift.end());
    ABSL_ASSIGN_OR_RETURN(
        const MemoryDesc row,
        runtime::PlainDesc({static_cast<int64_t>(both.size())}, context.src_value().type,
                           /*channels_last=*/false));
    ABSL_ASSIGN_OR_RETURN(auto packed, context.settings().weights->PackBias(both, row));
    weights.push_back(context.plan().Constant(kArgWeights, std::move(packed)));
  }
  return context.EmitUnaryInPlace(std::move(primitive), src, std::move(weights));
}

}  // namespace tilewire::lowering
