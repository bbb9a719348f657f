// SPDX-License-Identifier: Apache-2.0
//
// Backward, gathered: each pixel of diff_src, a few channels at a time, adds up the windows that
// hold it, in their order and in double as the reference does; of a maximum those whose saved place
// is the pixel.
#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/lanes.h"
#include "engine/threading/stop.h"

namespace tilewire::pooling {
namespace {

// Windows along a dimension that hold an element of src: [first, end).
struct WindowRange {
  int64_t first, end;
};

std::vector<WindowRange> RangesOf(const Axis& axis) {
  std::vector<WindowRange> ranges;
  for (int64_t i = 0; i < axis.in; ++i) {
    const int64_t reach = i + axis.padding;
    const int64_t first = reach < axis.kernel ? 0 : (reach - axis.kernel) / axis.stride + 1;
    ranges.push_back({first, std::min(reach / axis.stride + 1, axis.out)});
  }
  return ranges;
}

// Immutable.
class LanesBackward final : public Primitive {
 public:
  LanesBackward(PrimitiveInfo info, const PoolingDesc& desc)
      : Primitive(std::move(info)), layout_(desc), algorithm_(desc.algorithm) {
    for (int d = 0; d < 3; ++d) windows_[d] = RangesOf(layout_.axes[d]);
  }

 private:
  // A group of an image.
  struct Operands {
    const float* diff_dst;
    const uint8_t* places;  // null of averages
    float* diff_src;
    int count;
  };

  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const bool is_max = algorithm_ == PoolingAlgorithm::kMax;
    const auto* const diff_dst = args.Get<const float>(kArgDiffDst) + layout_.dst_first;
    const uint8_t* const places =
        is_max ? args.Get<const uint8_t>(kArgWorkspace) + layout_.dst_first : nullptr;
    auto* const diff_src = args.Get<float>(kArgDiffSrc) + layout_.src_first;
    const auto groups = static_cast<int64_t>(layout_.groups.size());
    team.ParallelFor(layout_.images * groups, [&](int64_t index) {
      const LaneGroup& group = layout_.groups[index % groups];
      const int64_t image = index / groups, at = image * layout_.dst_image + group.dst;
      const Operands operands = {diff_dst + at, is_max ? places + at : nullptr,
                                 diff_src + image * layout_.src_image + group.src, group.count};
      group.count == kLanes ? RunGroup<kLanes>(operands) : RunGroup<0>(operands);
    });
  }

  template <int kCount>
  void RunGroup(const Operands& operands) const {
    const auto& [depth, height, width] = layout_.axes;
    for (int64_t z = 0; z < depth.in; ++z) {
      for (int64_t y = 0; y < height.in && !threading::Stopped(); ++y) {
        for (int64_t x = 0; x < width.in; ++x) {
          if (kCount == kLanes && operands.places != nullptr) {
            RunVectors(operands, {z, y, x});
          } else {
            RunPixel<kCount>(operands, {z, y, x});
          }
        }
      }
    }
  }

  // `kCount` is the operands' count, or 0 where that is not known.
  template <int kCount>
  void RunPixel(const Operands& operands, const std::array<int64_t, 3>& pixel) const {
    const int lanes = kCount != 0 ? kCount : operands.count;
    const auto& axes = layout_.axes;
    double sum[kLanes] = {};
    const WindowRange depths = windows_[0][pixel[0]], rows = windows_[1][pixel[1]],
                      columns = windows_[2][pixel[2]];
    for (int64_t d = depths.first; d < depths.end; ++d) {
      for (int64_t h = rows.first; h < rows.end; ++h) {
        for (int64_t w = columns.first; w < columns.end; ++w) {
          const std::array<int64_t, 3> window = {d, h, w};
          const int64_t at =
              d * axes[0].dst_stride + h * axes[1].dst_stride + w * axes[2].dst_stride;
          const float* const diff_dst = operands.diff_dst + at;
          if (operands.places == nullptr) {
            const double divisor = DivisorOf(window);
            for (int lane = 0; lane < lanes; ++lane) sum[lane] += diff_dst[lane] / divisor;
            continue;
          }
          const int32_t place = PlaceOf(window, pixel);
          const uint8_t* const places = operands.places + at;
          for (int lane = 0; lane < lanes; ++lane)
            sum[lane] += places[lane] == place ? static_cast<double>(diff_dst[lane]) : 0.0;
        }
      }
    }
    float* const to = operands.diff_src + pixel[0] * axes[0].src_stride +
                      pixel[1] * axes[1].src_stride + pixel[2] * axes[2].src_stride;
    for (int lane = 0; lane < lanes; ++lane) to[lane] = static_cast<float>(sum[lane]);
  }

  // RunPixel() of a maximum and kLanes channels, as vectors.
  void RunVectors(const Operands& operands, const std::array<int64_t, 3>& pixel) const {
    const auto& axes = layout_.axes;
    const WindowRange depths = windows_[0][pixel[0]], rows = windows_[1][pixel[1]],
                      columns = windows_[2][pixel[2]];
    __m128d sums[kLanes / 2] = {};
    for (int64_t d = depths.first; d < depths.end; ++d) {
      for (int64_t h = rows.first; h < rows.end; ++h) {
        int64_t at =
            d * axes[0].dst_stride + h * axes[1].dst_stride + columns.first * axes[2].dst_stride;
        int64_t place = PlaceOf({d, h, columns.first}, pixel);
        for (int64_t w = columns.first; w < columns.end; ++w) {
          AddWindow(operands.diff_dst + at, operands.places + at, static_cast<char>(place), sums);
          at += axes[2].dst_stride;
          place -= axes[2].stride;
        }
      }
    }
    float* const to = operands.diff_src + pixel[0] * axes[0].src_stride +
                      pixel[1] * axes[1].src_stride + pixel[2] * axes[2].src_stride;
    for (int i = 0; i < kLanes; i += 4)
      _mm_storeu_ps(to + i,
                    _mm_movelh_ps(_mm_cvtpd_ps(sums[i / 2]), _mm_cvtpd_ps(sums[i / 2 + 1])));
  }

  // Adds the elements of a window whose saved place is `place`.
  static void AddWindow(const float* diff_dst, const uint8_t* places, char place, __m128d* sums) {
    static_assert(kLanes == 8, "the places of a window are half a vector of bytes");
    const __m128i saved = _mm_loadl_epi64(reinterpret_cast<const __m128i*>(places));
    const __m128i bytes = _mm_cmpeq_epi8(saved, _mm_set1_epi8(place));
    const __m128i words = _mm_unpacklo_epi8(bytes, bytes);
    const __m128i masks[] = {_mm_unpacklo_epi16(words, words), _mm_unpackhi_epi16(words, words)};
    for (int i = 0; i < 2; ++i) {
      const __m128 taken = _mm_and_ps(_mm_castsi128_ps(masks[i]), _mm_loadu_ps(diff_dst + 4 * i));
      sums[2 * i] = _mm_add_pd(sums[2 * i], _mm_cvtps_pd(taken));
      sums[2 * i + 1] = _mm_add_pd(sums[2 * i + 1], _mm_cvtps_pd(_mm_movehl_ps(taken, taken)));
    }
  }

  // The number of a pixel among the taps of a window.
  int32_t PlaceOf(const std::array<int64_t, 3>& window, const std::array<int64_t, 3>& pixel) const {
    int64_t place = 0;
    for (int d = 0; d < 3; ++d) {
      const Axis& axis = layout_.axes[d];
      place = place * axis.kernel + pixel[d] - window[d] * axis.stride + axis.padding;
    }
    return static_cast<int32_t>(place);
  }

  double DivisorOf(const std::array<int64_t, 3>& window) const {
    int64_t divisor = 1;
    for (int d = 0; d < 3; ++d) {
      const Axis& axis = layout_.axes[d];
      divisor *=
          algorithm_ == PoolingAlgorithm::kAvgIncludePadding ? axis.kernel : axis.Taps(window[d]);
    }
    return static_cast<double>(divisor);
  }

  const LaneLayout layout_;
  const PoolingAlgorithm algorithm_;
  std::array<std::vector<WindowRange>, 3> windows_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveLanesBackward(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveReferenceBackward(request));
  ABSL_RETURN_IF_ERROR(RequireLanes(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLanesBackward(
    const Request<PoolingDesc>& request) {
  return std::make_unique<LanesBackward>(BackwardInfoOf(request), request.desc);
}

}  // namespace tilewire::pooling
