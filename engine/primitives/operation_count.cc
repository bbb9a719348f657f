// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/operation_count.h"

#include <algorithm>

namespace tilewire {
namespace {

double Elements(const MemoryDesc& desc) { return static_cast<double>(desc.ElementCount()); }

// Each weight is multiplied once per image and pixel of `swept`.
double WeightsTimesPixels(const Primitive& primitive, int swept) {
  const MemoryDesc& tensor = primitive.Desc(swept);
  if (tensor.ElementCount() == 0) return 0;
  return Elements(primitive.Desc(kArgWeights)) * (tensor.ElementCount() / tensor.dim(1));
}

double ProductsOf(const Primitive& primitive, const MemoryDesc& dst) {
  switch (primitive.kind()) {
    case PrimitiveKind::kConvolution:
    case PrimitiveKind::kInnerProduct: {
      constexpr int64_t kWindow = MaxPoolingPostOp::kSize * MaxPoolingPostOp::kSize;
      return WeightsTimesPixels(primitive, kArgDst) *
             (primitive.info().pools_destination ? kWindow : 1);
    }
    case PrimitiveKind::kDeconvolution:
      return WeightsTimesPixels(primitive, kArgSrc);
    case PrimitiveKind::kMatmul:
      return Elements(dst) * primitive.Desc(kArgSrc).dim(dst.rank() - 1);
    case PrimitiveKind::kRnn:  // each weight once per step of each sequence
      return (Elements(primitive.Desc(kArgWeights)) + Elements(primitive.Desc(kArgWeightsIter))) *
             dst.dim(0) * dst.dim(1);
    case PrimitiveKind::kAttention: {  // scores and dst, which is not empty
      const MemoryDesc& keys = primitive.Desc(kArgMultipleSrc + 1);
      return Elements(dst) / dst.dim(3) * keys.dim(2) * (keys.dim(3) + dst.dim(3));
    }
    default:
      return 0;
  }
}

}  // namespace

int64_t OperationCount(const Primitive& primitive) {
  const MemoryDesc& dst = primitive.Desc(kArgDst);
  if (dst.IsZero() || dst.ElementCount() == 0) return 0;
  constexpr double kMost = int64_t{1} << 62;
  return static_cast<int64_t>(std::min(2 * ProductsOf(primitive, dst), kMost));
}

}  // namespace tilewire
