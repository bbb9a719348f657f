// SPDX-License-Identifier: Apache-2.0
//
// The executable specification: any layouts, one element of dst after the other.
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reference_primitive.h"
#include "engine/primitives/roi_align/implementations.h"
#include "engine/primitives/roi_align/samples.h"

namespace tilewire::roi_align {
namespace {

// The weighted pixels of one sample, summed or the largest.
float SampleOf(const RoiAlignDesc& desc, const float* src, Dims at, const Taps& y, const Taps& x) {
  const auto pixel = [&](int64_t row, int64_t column) {
    at[2] = row, at[3] = column;
    return src[desc.src.Offset(at)];
  };
  const float parts[] = {y.low_weight * x.low_weight * pixel(y.low, x.low),
                         y.low_weight * x.high_weight * pixel(y.low, x.high),
                         y.high_weight * x.low_weight * pixel(y.high, x.low),
                         y.high_weight * x.high_weight * pixel(y.high, x.high)};
  if (desc.takes_maximum) return *std::max_element(parts, parts + 4);
  return parts[0] + parts[1] + parts[2] + parts[3];
}

}  // namespace

absl::StatusOr<RoiAlignDesc> ResolveReference(const Request<RoiAlignDesc>& request) {
  const RoiAlignDesc& desc = request.desc;
  ABSL_RETURN_IF_ERROR(RequireF32(desc.rois));
  ABSL_RETURN_IF_ERROR(RequireType(DataType::kS64, {&desc.batches}));
  return ResolveF32(desc, request.attributes);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const Request<RoiAlignDesc>& request) {
  const RoiAlignDesc& desc = request.desc;
  const auto check = [desc](const ExecuteArgs& args, const threading::Team&) {
    return CheckRegions(desc, args);
  };
  const auto compute = [desc](const ReferencePiece& piece) {
    piece.ForEach([&](const Dims& index) {
      const Region region = RegionOf(desc, piece.Get<const float>(kArgMultipleSrc + 1),
                                     piece.Get<const int64_t>(kArgMultipleSrc + 2), index[0]);
      const Dims image = {region.image, index[1], 0, 0};
      float result = 0;
      bool is_first = true;
      ForEachOperation({region.high.samples, region.wide.samples}, [&](const Dims& sample) {
        const Taps y = TapsOf(region.high, index[2], sample[0], desc.src.dim(2));
        const Taps x = TapsOf(region.wide, index[3], sample[1], desc.src.dim(3));
        const float value =
            y.inside && x.inside
                ? SampleOf(desc, piece.Get<const float>(kArgMultipleSrc), image, y, x)
                : 0.0f;
        if (!desc.takes_maximum) {
          result += value;
        } else if (is_first || value > result) {
          result = value;
        }
        is_first = false;
      });
      if (!desc.takes_maximum) result /= static_cast<float>(region.samples());
      piece.Get<float>(kArgDst)[desc.dst.Offset(index)] = result;
    });
  };
  const int64_t samples = std::max<int64_t>(1, desc.samples_per_bin * desc.samples_per_bin);
  return CreateReferencePrimitive(
      InfoOf(request), {.results = desc.dst.dims(), .operations = {samples}, .check = check},
      compute);
}

}  // namespace tilewire::roi_align
