// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/operation_count.h"

#include <algorithm>

namespace tilewire {
namespace {

MemoryDesc TensorOf(const PrimitiveInfo& info, int arg) {
  for (const ArgDesc& known : info.args) {
    if (known.arg == arg) return known.desc;
  }
  return MemoryDesc();
}

double Elements(const MemoryDesc& desc) { return static_cast<double>(desc.ElementCount()); }

// Each weight is multiplied once per image and pixel of `swept`.
double WeightsTimesPixels(const PrimitiveInfo& info, int swept) {
  const MemoryDesc tensor = TensorOf(info, swept);
  if (tensor.ElementCount() == 0) return 0;
  return Elements(TensorOf(info, kArgWeights)) * (tensor.ElementCount() / tensor.dim(1));
}

double ProductsOf(const PrimitiveInfo& info, const MemoryDesc& dst) {
  switch (info.kind) {
    case PrimitiveKind::kConvolution:
    case PrimitiveKind::kInnerProduct: {
      constexpr int64_t kWindow = MaxPoolingPostOp::kSize * MaxPoolingPostOp::kSize;
      return WeightsTimesPixels(info, kArgDst) * (info.pools_destination ? kWindow : 1);
    }
    case PrimitiveKind::kDeconvolution:
      return WeightsTimesPixels(info, kArgSrc);
    case PrimitiveKind::kMatmul:
      return Elements(dst) * TensorOf(info, kArgSrc).dim(dst.rank() - 1);
    default:
      return 0;
  }
}

}  // namespace

int64_t OperationCount(const PrimitiveInfo& info) {
  const MemoryDesc dst = TensorOf(info, kArgDst);
  if (dst.IsZero() || dst.ElementCount() == 0) return 0;
  constexpr double kMost = int64_t{1} << 62;
  return static_cast<int64_t>(std::min(2 * ProductsOf(info, dst), kMost));
}

}  // namespace tilewire
