// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/integer_layout.h"
#include "engine/lowering/plan/quantization.h"
#include "engine/lowering/plan/source_layouts.h"

namespace tilewire::lowering {

absl::Status LowerIntegerSum(const network::IntegerSum& sum, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, IntegerDesc(context));
  std::vector<Place> sources;
  for (ValueId src : context.srcs()) {
    ABSL_ASSIGN_OR_RETURN(const MemoryDesc desc, dst.WithDataType(context.value(src).type));
    ABSL_ASSIGN_OR_RETURN(sources.emplace_back(), context.InLayout(src, desc));
  }
  IntegerSumDesc desc{.srcs = DescsOf(sources), .dst = dst};
  AppendParams(sum.src_quantization, &desc);
  desc.dst_scale = sum.dst_quantization.scale;
  desc.dst_zero_point = sum.dst_quantization.zero_point;
  desc.relu = sum.relu;
  context.ConsumeSources();
  return context.EmitMultiple(context.Create(desc), sources);
}

}  // namespace tilewire::lowering
