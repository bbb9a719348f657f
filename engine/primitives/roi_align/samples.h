// SPDX-License-Identifier: Apache-2.0
//
// Where the results of regions look.
#ifndef ENGINE_PRIMITIVES_ROI_ALIGN_SAMPLES_H_
#define ENGINE_PRIMITIVES_ROI_ALIGN_SAMPLES_H_

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/primitives/roi_align/roi_align.h"

namespace tilewire::roi_align {

inline constexpr int64_t kMostSamples = 4096;

// One direction of a region: where it begins, how large a bin is, and how many samples a bin has.
struct Span {
  float start = 0, bin = 0;
  int64_t samples = 1;
};

inline Span SpanOf(const RoiAlignDesc& desc, float low, float high, int64_t bins) {
  const float offset = desc.aligned ? 0.5f : 0.0f;
  const float start = low * desc.scale - offset;
  float size = high * desc.scale - offset - start;
  if (!desc.aligned) size = std::max(size, 1.0f);
  Span span{start, size / static_cast<float>(bins), desc.samples_per_bin};
  if (span.samples > 0) return span;
  // A region without pixels has no samples; of one that CheckRegions() refuses they are bounded.
  span.samples = static_cast<int64_t>(
      std::clamp(std::ceil(span.bin), 0.0f, static_cast<float>(kMostSamples + 1)));
  return span;
}

// A sample's two pixels along one dimension, and how much each counts; none where it is outside.
struct Taps {
  int64_t low = 0, high = 0;
  float low_weight = 0, high_weight = 0;
  bool inside = false;
};

inline Taps TapsOf(const Span& span, int64_t bin, int64_t sample, int64_t size) {
  const float share = (static_cast<float>(sample) + 0.5f) / static_cast<float>(span.samples);
  float at = span.start + static_cast<float>(bin) * span.bin + share * span.bin;
  if (!(at >= -1 && at <= static_cast<float>(size))) return {};
  at = std::max(at, 0.0f);
  const int64_t low = std::min(static_cast<int64_t>(at), size - 1);
  if (low == size - 1) return {low, low, 1, 0, true};
  const float past = at - static_cast<float>(low);
  return {low, low + 1, 1 - past, past, true};
}

// A region, as Run() reads it.
struct Region {
  int64_t image = 0;
  Span high, wide;
  int64_t samples() const { return std::max<int64_t>(1, high.samples * wide.samples); }
};

// Region `r`. The image is inside src even where CheckRegions() was not asked.
Region RegionOf(const RoiAlignDesc& desc, const float* rois, const int64_t* batches, int64_t r);

//   kInvalidArgument  see roi_align.h
absl::Status CheckRegions(const RoiAlignDesc& desc, const ExecuteArgs& args);

}  // namespace tilewire::roi_align

#endif  // ENGINE_PRIMITIVES_ROI_ALIGN_SAMPLES_H_
