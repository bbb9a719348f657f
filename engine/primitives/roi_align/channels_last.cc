// SPDX-License-Identifier: Apache-2.0
//
// The channels of a pixel lie together in src and dst: a bin is the weighted sum of whole pixels.
// A piece of work is a row of bins of one region.
#include <algorithm>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/roi_align/implementations.h"
#include "engine/primitives/roi_align/samples.h"
#include "engine/threading/stop.h"

namespace tilewire::roi_align {
namespace {

constexpr absl::string_view kChannelsLast = "acdb";

// Four pixels and their weights.
struct Sample {
  const float* pixels[4];
  float weights[4];
};

void AddSample(const Sample& sample, int64_t channels, float* dst) {
  const float *a = sample.pixels[0], *b = sample.pixels[1], *c = sample.pixels[2],
              *d = sample.pixels[3];
  const float wa = sample.weights[0], wb = sample.weights[1], wc = sample.weights[2],
              wd = sample.weights[3];
  for (int64_t i = 0; i < channels; ++i) dst[i] += wa * a[i] + wb * b[i] + wc * c[i] + wd * d[i];
}

void MaxSample(const Sample& sample, int64_t channels, bool is_first, float* dst) {
  for (int64_t i = 0; i < channels; ++i) {
    float largest = sample.weights[0] * sample.pixels[0][i];
    for (int t = 1; t < 4; ++t) {
      const float part = sample.weights[t] * sample.pixels[t][i];
      largest = largest < part ? part : largest;
    }
    dst[i] = is_first || dst[i] < largest ? largest : dst[i];
  }
}

// Immutable.
class ChannelsLast final : public Primitive {
 public:
  ChannelsLast(PrimitiveInfo info, const RoiAlignDesc& desc)
      : Primitive(std::move(info)),
        desc_(desc),
        channels_(desc.src.dim(1)),
        height_(desc.src.dim(2)),
        width_(desc.src.dim(3)) {}

 private:
  absl::Status CheckElements(const ExecuteArgs& args, const threading::Team&) const override {
    return CheckRegions(desc_, args);
  }

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    if (desc_.dst.ElementCount() == 0) return;
    const int64_t rows = desc_.dst.dim(2), row_elements = desc_.dst.dim(3) * channels_;
    team.ParallelFor(desc_.dst.dim(0) * rows, [&](int64_t task) {
      const Region region = RegionOf(desc_, args.Get<const float>(kArgMultipleSrc + 1),
                                     args.Get<const int64_t>(kArgMultipleSrc + 2), task / rows);
      const float* image =
          args.Get<const float>(kArgMultipleSrc) + region.image * height_ * width_ * channels_;
      float* dst = args.Get<float>(kArgDst) + task * row_elements;
      threading::StopCheck stopped;
      for (int64_t bin = 0; bin < desc_.dst.dim(3); ++bin)
        PoolBin(region, image, task % rows, bin, dst + bin * channels_, &stopped);
    });
  }

  void PoolBin(const Region& region, const float* image, int64_t row, int64_t column, float* dst,
               threading::StopCheck* stopped) const {
    std::fill_n(dst, channels_, 0.0f);
    bool is_first = true;
    for (int64_t i = 0; i < region.high.samples; ++i) {
      const Taps y = TapsOf(region.high, row, i, height_);
      for (int64_t j = 0; j < region.wide.samples && !(*stopped)(); ++j) {
        const Taps x = TapsOf(region.wide, column, j, width_);
        AddTo(image, y, x, is_first, dst);
        is_first = false;
      }
    }
    if (desc_.takes_maximum) return;
    const float samples = static_cast<float>(region.samples());
    for (int64_t c = 0; c < channels_; ++c) dst[c] /= samples;
  }

  // Outside the image a sample is 0, which counts for the maximum alone.
  void AddTo(const float* image, const Taps& y, const Taps& x, bool is_first, float* dst) const {
    const bool inside = y.inside && x.inside;
    if (!inside && desc_.takes_maximum) {
      for (int64_t c = 0; c < channels_; ++c) dst[c] = is_first ? 0 : std::max(dst[c], 0.0f);
    }
    if (!inside) return;
    const auto pixel = [&](int64_t row, int64_t column) {
      return image + (row * width_ + column) * channels_;
    };
    const Sample sample = {
        {pixel(y.low, x.low), pixel(y.low, x.high), pixel(y.high, x.low), pixel(y.high, x.high)},
        {y.low_weight * x.low_weight, y.low_weight * x.high_weight, y.high_weight * x.low_weight,
         y.high_weight * x.high_weight}};
    if (desc_.takes_maximum) {
      MaxSample(sample, channels_, is_first, dst);
    } else {
      AddSample(sample, channels_, dst);
    }
  }

  const RoiAlignDesc desc_;
  const int64_t channels_, height_, width_;
};

// kUnimplemented  the channels of a pixel do not lie together, pixel after pixel
absl::Status RequireChannelsLast(const MemoryDesc& desc) {
  if (desc.IsDense() && desc.offset0() == 0 && LayoutPattern(desc) == kChannelsLast)
    return absl::OkStatus();
  return Unimplemented("takes nhwc tensors only, not ", desc.ToString());
}

}  // namespace

absl::StatusOr<RoiAlignDesc> ResolveChannelsLast(const Request<RoiAlignDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(RoiAlignDesc resolved, ResolveReference(request));
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrPattern(request.desc.dst, kChannelsLast));
  ABSL_RETURN_IF_ERROR(RequireChannelsLast(resolved.src));
  ABSL_RETURN_IF_ERROR(RequireChannelsLast(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannelsLast(
    const Request<RoiAlignDesc>& request) {
  return std::make_unique<ChannelsLast>(InfoOf(request), request.desc);
}

}  // namespace tilewire::roi_align
