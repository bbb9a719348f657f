// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/primitives/creation.h"
#include "engine/primitives/interpolate/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::interpolate {

absl::StatusOr<InterpolateDesc> ResolveReference(const Request<InterpolateDesc>& request) {
  return ResolveF32(request.desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(
    const Request<InterpolateDesc>& request) {
  const InterpolateDesc& desc = request.desc;
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const int64_t first = index[desc.axis] * desc.taps;
      Dims from = index;
      float sum = 0;
      ForEachOperation(desc.taps, [&](int64_t tap) {
        from[desc.axis] = desc.indices[first + tap];
        sum += desc.weights[first + tap] * piece.Get<const float>(kArgSrc)[desc.src.Offset(from)];
      });
      piece.Get<float>(kArgDst)[desc.dst.Offset(index)] = sum;
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), {desc.taps}}, compute);
}

}  // namespace tilewire::interpolate
