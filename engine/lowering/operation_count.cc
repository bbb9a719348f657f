// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/operation_count.h"

namespace tilewire::lowering {
namespace {

// Each weight is multiplied once per image and pixel of `swept`.
int64_t WeightsTimesPixels(const Primitive& primitive, int swept) {
  const MemoryDesc& tensor = primitive.Desc(swept);
  return primitive.Desc(kArgWeights).ElementCount() * (tensor.ElementCount() / tensor.dim(1));
}

}  // namespace

int64_t OperationCount(const Primitive& primitive) {
  const MemoryDesc& dst = primitive.Desc(kArgDst);
  if (dst.IsZero() || dst.ElementCount() == 0) return 0;
  switch (primitive.kind()) {
    case PrimitiveKind::kConvolution:
    case PrimitiveKind::kInnerProduct: {
      constexpr int64_t kWindow = MaxPoolingPostOp::kSize * MaxPoolingPostOp::kSize;
      return 2 * WeightsTimesPixels(primitive, kArgDst) *
             (primitive.info().pools_destination ? kWindow : 1);
    }
    case PrimitiveKind::kDeconvolution:
      return 2 * WeightsTimesPixels(primitive, kArgSrc);
    case PrimitiveKind::kMatmul:
      return 2 * dst.ElementCount() * primitive.Desc(kArgSrc).dim(dst.rank() - 1);
    default:
      return 0;
  }
}

}  // namespace tilewire::lowering
