// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// A product of two computed tensors, all of them in row-major order, but for a matrix on the right.
absl::Status LowerMatmul(const network::Matmul&, OperationContext& context) {
  const size_t rank = context.dst_value().dims.size();
  ABSL_ASSIGN_OR_RETURN(const Place a, context.RowMajorOfRank(context.src(0), rank));
  ABSL_ASSIGN_OR_RETURN(const Place b, context.StridedMatrixOr(context.src(1), rank));
  MatmulDesc desc{.src = a.desc, .weights = b.desc};
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.RowMajorDesc(context.dst()));
  const bool trains = !context.network().parameters.empty();
  if (trains && a.desc.data_type() == DataType::kF32) desc.prop_kind = PropKind::kForwardTraining;
  Attributes attributes;
  if (desc.src.data_type() == DataType::kF32) attributes.precision = context.precision();
  return context.EmitTo(desc.dst, context.Create(desc, attributes),
                        {{kArgSrc, a.buffer}, {kArgWeights, b.buffer}});
}

}  // namespace tilewire::lowering
