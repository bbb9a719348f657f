// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, every tap of one window after the other.
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/max_window/implementations.h"
#include "engine/primitives/reference_primitive.h"

namespace tilewire::max_window {
namespace {

// In src; empty where that is outside.
Dims PlaceOfTap(const MaxWindowDesc& desc, const Dims& index, const Dims& tap) {
  Dims at = index;
  for (size_t i = 0; i < tap.size(); ++i) {
    at[i + 2] =
        index[i + 2] * desc.strides[i] - desc.padding_left[i] + tap[i] * (desc.dilations[i] + 1);
    if (at[i + 2] < 0 || at[i + 2] >= desc.src.dim(static_cast<int>(i) + 2)) return {};
  }
  return at;
}

float IndexOf(const MaxWindowDesc& desc, const Dims& at) {
  if (at.empty()) return -1;
  const int rank = static_cast<int>(at.size());
  int64_t place = at[0] * desc.src.dim(1) + at[1];
  for (int i = 2; i < rank; ++i) {
    const int d = desc.result == MaxWindowResult::kColumnMajorIndex ? rank + 1 - i : i;
    place = place * desc.src.dim(d) + at[d];
  }
  return static_cast<float>(place);
}

}  // namespace

absl::StatusOr<MaxWindowDesc> ResolveReference(const Request<MaxWindowDesc>& request) {
  const MaxWindowDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  return WithDst(desc, OrPlain(desc.dst));
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<MaxWindowDesc>& request) {
  const MaxWindowDesc& desc = request.desc;
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      Dims best;
      float maximum = -std::numeric_limits<float>::infinity();
      ForEachOperation(desc.kernel, [&](const Dims& tap) {
        const Dims at = PlaceOfTap(desc, index, tap);
        if (at.empty()) return;
        const float x = piece.Get<const float>(kArgSrc)[desc.src.Offset(at)];
        if (!best.empty() && !(x > maximum) && !(std::isnan(maximum) && !std::isnan(x))) return;
        best = at;
        maximum = x;
      });
      piece.Get<float>(kArgDst)[desc.dst.Offset(index)] =
          desc.result == MaxWindowResult::kElement ? maximum : IndexOf(desc, best);
    });
  };
  return CreateReferencePrimitive(InfoOf(request), {desc.dst.dims(), desc.kernel}, compute);
}

}  // namespace tilewire::max_window
