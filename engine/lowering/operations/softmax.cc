// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/operations/forward_requests.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

absl::StatusOr<MemoryDesc> LayoutForSoftmax(const network::Value& value, int axis) {
  std::vector<int> order;  // of the dimensions, the axis last
  for (int d = 0; d < static_cast<int>(value.dims.size()); ++d) {
    if (d != axis) order.push_back(d);
  }
  order.push_back(axis);
  return runtime::NestedDesc(value.dims, value.type, order);
}

absl::Status LowerSoftmax(const network::Softmax& softmax, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, LayoutForSoftmax(context.dst_value(), softmax.axis));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), desc));
  return context.EmitUnaryInPlace(
      context.Create(SoftmaxDesc{.src = desc, .dst = desc, .axis = softmax.axis}), src);
}

}  // namespace tilewire::lowering
