// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/roi_align/implementations.h"
#include "engine/primitives/roi_align/roi_align.h"
#include "engine/primitives/roi_align/samples.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace roi_align {
namespace {

absl::Status Validate(const RoiAlignDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckSource("roi_align: src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckSource("roi_align: rois", desc.rois));
  ABSL_RETURN_IF_ERROR(CheckSource("roi_align: batches", desc.batches));
  ABSL_RETURN_IF_ERROR(CheckDestination("roi_align: dst", desc.dst));
  if (!(desc.scale > 0) || !std::isfinite(desc.scale))
    return InvalidArgument("roi_align: scale ", desc.scale, "; it must be positive");
  if (desc.samples_per_bin < 0 || desc.samples_per_bin > kMostSamples)
    return InvalidArgument("roi_align: ", desc.samples_per_bin, " samples per bin; at most ",
                           kMostSamples);
  const bool fits = desc.src.rank() == 4 && desc.dst.rank() == 4 && desc.rois.rank() == 2 &&
                    desc.rois.dim(1) == 4 && desc.batches.rank() == 1 &&
                    desc.rois.dim(0) == desc.batches.dim(0) &&
                    desc.dst.dim(0) == desc.rois.dim(0) && desc.dst.dim(1) == desc.src.dim(1);
  if (fits) return absl::OkStatus();
  return InvalidArgument("roi_align: src ", desc.src.ToString(), ", rois ", desc.rois.ToString(),
                         ", batches ", desc.batches.ToString(), ", dst ", desc.dst.ToString());
}

}  // namespace

Region RegionOf(const RoiAlignDesc& desc, const float* rois, const int64_t* batches, int64_t r) {
  const auto at = [&](int64_t i) { return rois[desc.rois.Offset({r, i})]; };
  Region region;
  region.image = std::clamp<int64_t>(batches[desc.batches.Offset({r})], 0, desc.src.dim(0) - 1);
  region.high = SpanOf(desc, at(1), at(3), desc.dst.dim(2));
  region.wide = SpanOf(desc, at(0), at(2), desc.dst.dim(3));
  return region;
}

absl::Status CheckRegions(const RoiAlignDesc& desc, const ExecuteArgs& args) {
  const float* rois = args.Get<const float>(kArgMultipleSrc + 1);
  const int64_t* batches = args.Get<const int64_t>(kArgMultipleSrc + 2);
  for (int64_t r = 0; r < desc.rois.dim(0); ++r) {
    const int64_t image = batches[desc.batches.Offset({r})];
    if (image < 0 || image >= desc.src.dim(0))
      return InvalidArgument("region ", r, " is of image ", image, ", of ", desc.src.dim(0),
                             " images");
    const Region region = RegionOf(desc, rois, batches, r);
    const bool finite = std::isfinite(region.high.start + region.high.bin) &&
                        std::isfinite(region.wide.start + region.wide.bin);
    if (!finite || std::max(region.high.samples, region.wide.samples) > kMostSamples)
      return InvalidArgument("region ", r, " is not finite, or has more than ", kMostSamples,
                             " samples along a bin");
  }
  return absl::OkStatus();
}

PrimitiveInfo InfoOf(const Request<RoiAlignDesc>& request) {
  const RoiAlignDesc& desc = request.desc;
  return BasicInfo(request, {{kArgMultipleSrc, desc.src},
                             {kArgMultipleSrc + 1, desc.rois},
                             {kArgMultipleSrc + 2, desc.batches},
                             {kArgDst, desc.dst}});
}

}  // namespace roi_align

std::vector<RoiAlignDesc> RoiAlignProbes(DataType type) {
  std::vector<RoiAlignDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    RoiAlignDesc desc;
    desc.src = probes::Tagged({2, 32, 14, 14}, type, tag);
    desc.rois = probes::Tagged({3, 4}, DataType::kF32, "nc");
    desc.batches = probes::Tagged({3}, DataType::kS64, "x");
    desc.dst = probes::Any({3, 32, 7, 7}, type);
    descs.push_back(desc);
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE(RoiAlign, roi_align,
                          {kAnyCpu, {{"channels_last", ResolveChannelsLast, CreateChannelsLast}}});

}  // namespace tilewire
