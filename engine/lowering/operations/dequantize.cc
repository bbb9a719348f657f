// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/quantization.h"

namespace tilewire::lowering {

// Keeps the layout of its source. Integers that stand for themselves are converted.
absl::Status LowerDequantize(const network::Dequantize& dequantize, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, context.DstLike(src.desc));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, layout.WithDataType(DataType::kF32));
  const bool is_as_it_is = dequantize.params == std::vector{network::QuantizationParams()};
  if (is_as_it_is && src.desc.data_type() != DataType::kF32) {
    return context.EmitUnary(context.Create(ConvertDesc{src.desc, dst}), src);
  }
  QuantizeDesc desc{.src = src.desc, .dst = dst, .axis = dequantize.axis};
  AppendParams(dequantize.params, &desc);
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
