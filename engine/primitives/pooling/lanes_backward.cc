// SPDX-License-Identifier: Apache-2.0
//
// Backward, gathered: each pixel of diff_src, a few channels at a time, adds up the windows that
// hold it, in their order and in double as the reference does; of a maximum those whose saved place
// is the pixel. Windows that neither overlap nor leave pixels out are taken one by one instead:
// each of their pixels has one term.
#include <emmintrin.h>

#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/cache_line.h"
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

// Whether windows cover src, without gaps and each pixel once.
bool Tiles(const LaneLayout& layout) {
  return std::all_of(layout.axes.begin(), layout.axes.end(), [](const Axis& axis) {
    return axis.stride == axis.kernel && axis.padding == 0 && axis.in == axis.out * axis.kernel;
  });
}

// The part that a window gives to the pixel of tap `tap`, of the 16 channels of a pair: like a sum
// in double that begins with 0. `streams`: past the caches.
template <bool streams>
void PutTap(const float* diff_dst, const uint8_t* places, char tap, float* to) {
  static_assert(kLanesOfPair == 16, "places are a vector of bytes");
  const __m128i saved = _mm_loadu_si128(reinterpret_cast<const __m128i*>(places));
  const __m128i bytes = _mm_cmpeq_epi8(saved, _mm_set1_epi8(tap));
  const __m128i words[] = {_mm_unpacklo_epi8(bytes, bytes), _mm_unpackhi_epi8(bytes, bytes)};
  for (int i = 0; i < 4; ++i) {
    const __m128i half = words[i / 2];
    const __m128i mask =
        i % 2 == 0 ? _mm_unpacklo_epi16(half, half) : _mm_unpackhi_epi16(half, half);
    const __m128 taken = _mm_and_ps(_mm_castsi128_ps(mask), _mm_loadu_ps(diff_dst + 4 * i));
    const __m128 sum = _mm_add_ps(_mm_setzero_ps(), taken);
    streams ? _mm_stream_ps(to + 4 * i, sum) : _mm_storeu_ps(to + 4 * i, sum);
  }
}

// Immutable.
class LanesBackward final : public Primitive {
 public:
  LanesBackward(PrimitiveInfo info, const PoolingDesc& desc)
      : Primitive(std::move(info)), layout_(desc), algorithm_(desc.algorithm) {
    for (int d = 0; d < 3; ++d) windows_[d] = RangesOf(layout_.axes[d]);
    tiles_ = algorithm_ == PoolingAlgorithm::kMax && Tiles(layout_);
    const auto& [depth, height, width] = layout_.axes;
    may_stream_ = desc.src.SizeBytes() > kLargeGradient && width.src_stride == kLanesOfPair &&
                  KeepAligned({depth.src_stride, height.src_stride}, sizeof(__m128));
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
    const Operands all = {diff_dst, places, diff_src, 0};
    layout_.ForEachPair(team, [&](int64_t image, int64_t first, int64_t end) {
      if (tiles_ && layout_.IsBlock(first, end)) {
        RunBlock(OperandsOf(all, image, first));
      } else {
        RunGroups(all, image, first, end);
      }
    });
  }

  Operands OperandsOf(const Operands& all, int64_t image, int64_t group) const {
    const LaneGroup& lanes = layout_.groups[group];
    const int64_t at = image * layout_.dst_image + lanes.dst;
    return {all.diff_dst + at, all.places == nullptr ? nullptr : all.places + at,
            all.diff_src + image * layout_.src_image + lanes.src, lanes.count};
  }

  void RunGroups(const Operands& all, int64_t image, int64_t first, int64_t end) const {
    const auto& [depth, height, width] = layout_.axes;
    for (int64_t z = 0; z < depth.in; ++z) {
      for (int64_t y = 0; y < height.in && !threading::Stopped(); ++y) {
        for (int64_t g = first; g < end; ++g) {
          const Operands operands = OperandsOf(all, image, g);
          operands.count == kLanes ? RunRow<kLanes>(operands, z, y) : RunRow<0>(operands, z, y);
        }
      }
    }
  }

  template <int kCount>
  void RunRow(const Operands& operands, int64_t z, int64_t y) const {
    for (int64_t x = 0; x < layout_.axes[2].in; ++x) {
      if (kCount == kLanes && operands.places != nullptr) {
        RunVectors(operands, {z, y, x});
      } else {
        RunPixel<kCount>(operands, {z, y, x});
      }
    }
  }

  // A pair of groups, window by window.
  void RunBlock(const Operands& operands) const {
    const auto& [depth, height, width] = layout_.axes;
    const bool streams = may_stream_ && BeginsLine(operands.diff_src);
    for (int64_t d = 0; d < depth.out; ++d) {
      for (int64_t h = 0; h < height.out && !threading::Stopped(); ++h)
        streams ? RunWindows<true>(operands, d, h) : RunWindows<false>(operands, d, h);
    }
    if (streams) _mm_sfence();  // before other threads are told that the piece has ended
  }

  // A row of windows, one row of their pixels after the other.
  template <bool streams>
  void RunWindows(const Operands& operands, int64_t d, int64_t h) const {
    const auto& [depth, height, width] = layout_.axes;
    const int64_t at = d * depth.dst_stride + h * height.dst_stride;
    int64_t tap = 0;
    for (int64_t z = d * depth.kernel; z < (d + 1) * depth.kernel; ++z) {
      for (int64_t y = h * height.kernel; y < (h + 1) * height.kernel; ++y) {
        float* to = operands.diff_src + z * depth.src_stride + y * height.src_stride;
        for (int64_t w = 0; w < width.out; ++w) {
          const float* const diff_dst = operands.diff_dst + at + w * width.dst_stride;
          const uint8_t* const places = operands.places + at + w * width.dst_stride;
          for (int64_t x = 0; x < width.kernel; ++x, to += width.src_stride)
            PutTap<streams>(diff_dst, places, static_cast<char>(tap + x), to);
        }
        tap += width.kernel;
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
  bool tiles_, may_stream_;
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
