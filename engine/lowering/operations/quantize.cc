// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/quantization.h"
#include "engine/lowering/plan/strided_view.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

// Writes the channels last, as most primitives for 8-bit integers read them, and in row-major order
// what products of matrices read. An input of the network is taken from the request in that order,
// too; any other source is read where it is.
absl::Status LowerQuantize(const network::Quantize& quantize, OperationContext& context) {
  const network::Value& value = context.dst_value();
  const bool channels_last = !IsReadByStrides(context, context.dst());
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                        runtime::PlainDesc(value.dims, value.type, channels_last));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc reals, dst.WithDataType(DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.HomeOr(context.src(), reals));
  QuantizeDesc desc{.src = src.desc, .dst = dst, .axis = quantize.axis};
  AppendParams(quantize.params, &desc);
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
