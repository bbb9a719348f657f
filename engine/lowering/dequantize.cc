// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/quantize_step.h"

namespace tilewire::lowering {

// Keeps the layout of its source.
absl::Status LowerDequantize(const graph::Dequantize& dequantize, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.Home(context.src()));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc layout, context.DstLike(src.desc));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, layout.WithDataType(DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(auto step, runtime::CreateDequantizeStep(dequantize, src.desc, dst));
  return context.EmitUnary(std::move(step), src);
}

}  // namespace tilewire::lowering
