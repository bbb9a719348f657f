// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// One pass over the bytes, those of the request where they come in one piece. Keeps their layout,
// which a convolution that reads pixels then reads as it is.
absl::Status LowerScaleBytes(const network::ScaleBytes& bytes, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, src.desc.WithDataType(DataType::kF32));
  return context.EmitUnary(
      context.Create(QuantizeDesc{.src = src.desc,
                                  .dst = dst,
                                  .axis = bytes.axis,
                                  .scales = bytes.scale,
                                  .zero_points = std::vector<int32_t>(bytes.scale.size(), 0),
                                  .shifts = bytes.shift}),
      src);
}

}  // namespace tilewire::lowering
