// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"

namespace tilewire::lowering {

// Reads images whose channels lie together, and gives such.
absl::Status LowerRoiAlign(const network::RoiAlign& pooling, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(
      const MemoryDesc pixels,
      MemoryDesc::Create(context.src_value(0).dims, DataType::kF32, FormatTag::k_nhwc));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(0), pixels));
  ABSL_ASSIGN_OR_RETURN(const Place rois, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place batches, context.RowMajor(context.src(2)));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc dst, context.DstLike(pixels));
  context.ConsumeSources();
  return context.EmitMultiple(
      context.Create(RoiAlignDesc{pooling.takes_maximum, pooling.aligned, pooling.scale,
                                  pooling.samples_per_bin, src.desc, rois.desc, batches.desc, dst}),
      {src, rois, batches});
}

}  // namespace tilewire::lowering
