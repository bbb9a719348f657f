// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/integer_layout.h"
#include "engine/lowering/plan/quantization.h"
#include "engine/lowering/plan/strided_view.h"

namespace tilewire::lowering {

// In row-major order what products of matrices read. An input of the network is taken from the
// request in the order of the result; any other source is read where it is.
absl::Status LowerQuantize(const network::Quantize& quantize, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst,
                        IntegerDesc(context, IsReadByStrides(context, context.dst())));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc reals, dst.WithDataType(DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.HomeOr(context.src(), reals));
  QuantizeDesc desc{.src = src.desc, .dst = dst, .axis = quantize.axis};
  AppendParams(quantize.params, &desc);
  return context.EmitUnary(context.Create(desc), src);
}

}  // namespace tilewire::lowering
