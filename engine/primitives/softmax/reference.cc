// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one row of the axis after the other.
#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/memory/separable_offsets.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/softmax/implementations.h"

namespace tilewire::softmax {

absl::StatusOr<SoftmaxDesc> ResolveReference(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrLayoutOf(desc.dst, desc.src));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  const int64_t size = desc.dst.dim(desc.axis);
  const auto compute = [axis = desc.axis, size,
                        is_log = desc.algorithm == SoftmaxAlgorithm::kLogSoftmax,
                        src_offsets = SeparableOffsets(desc.src),
                        dst_offsets = SeparableOffsets(desc.dst)](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& row) {
      const float* src = piece.Get<const float>(kArgSrc) + src_offsets.Offset(row);
      float* dst = piece.Get<float>(kArgDst) + dst_offsets.Offset(row);
      float highest = -std::numeric_limits<float>::infinity();
      ForEachOperation(
          size, [&](int64_t i) { highest = std::max(highest, src[src_offsets.At(axis, i)]); });
      if (is_log) {
        double sum = 0;
        ForEachOperation(size, [&](int64_t i) {
          sum += std::exp(static_cast<double>(src[src_offsets.At(axis, i)]) - highest);
        });
        const double below = highest + std::log(sum);
        ForEachOperation(size, [&](int64_t i) {
          dst[dst_offsets.At(axis, i)] = static_cast<float>(src[src_offsets.At(axis, i)] - below);
        });
        return;
      }
      float total = 0;
      ForEachOperation(size, [&](int64_t i) {
        const float power = std::exp(src[src_offsets.At(axis, i)] - highest);
        dst[dst_offsets.At(axis, i)] = power;
        total += power;
      });
      ForEachOperation(size, [&](int64_t i) { dst[dst_offsets.At(axis, i)] /= total; });
    });
  };
  return CreateReferencePrimitive(InfoOf(request),
                                  {LinesAlong(desc.dst.dims(), desc.axis), {3, size}}, compute);
}

}  // namespace tilewire::softmax
