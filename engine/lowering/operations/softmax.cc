// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {

// Makes the axis the innermost dimension: the generated code wants the elements that it
// exponentiates and adds up to be neighbours in memory.
absl::Status LowerSoftmax(const network::Softmax& softmax, OperationContext& context) {
  const network::Value& value = context.dst_value();
  std::vector<int> order;  // of the dimensions, the axis last
  for (int d = 0; d < static_cast<int>(value.dims.size()); ++d) {
    if (d != softmax.axis) order.push_back(d);
  }
  order.push_back(softmax.axis);
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, runtime::NestedDesc(value.dims, value.type, order));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), desc));
  return context.EmitUnaryInPlace(
      context.Create(SoftmaxDesc{.src = desc, .dst = desc, .axis = softmax.axis}), src);
}

}  // namespace tilewire::lowering
