// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/pooled_destination.h"

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"

namespace tilewire::convolution {

absl::Status ValidateMaxPooling(const ConvolutionDesc& desc, const Attributes& attributes) {
  if (!attributes.post_ops.HasMaxPooling()) return absl::OkStatus();
  const MemoryDesc& dst = desc.dst;
  if (dst.rank() != 4) {
    return Unimplemented("convolution: a max pooling post-op needs 2 spatial dimensions, dst has ",
                         dst.rank() - 2);
  }
  for (int d = 2; d < 4; ++d) {
    if (dst.dim(d) >= MaxPoolingPostOp::kSize) continue;
    return InvalidArgument("convolution: dst ", DimsToString(dst.dims()),
                           " has no window of a max pooling post-op");
  }
  if (attributes.post_ops.HasSum()) {
    return Unimplemented(
        "convolution: a sum post-op adds a dst that is not pooled, with a max pooling post-op dst "
        "is pooled");
  }
  if (dst.IsAny() || (dst.IsDense() && dst.offset0() == 0)) return absl::OkStatus();
  return Unimplemented("convolution: with a max pooling post-op dst is `any` or dense, not ",
                       dst.ToString());
}

absl::StatusOr<MemoryDesc> WrittenDst(const MemoryDesc& dst, const Attributes& attributes) {
  if (!attributes.post_ops.HasMaxPooling()) return dst;
  Dims dims = dst.dims();
  for (int d = 2; d < 4; ++d) dims[d] /= MaxPoolingPostOp::kSize;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc pooled, MemoryDesc::CreateAny(dims, dst.data_type()));
  return OrLayoutOf(pooled, dst);
}

}  // namespace tilewire::convolution
