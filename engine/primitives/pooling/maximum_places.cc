// SPDX-License-Identifier: Apache-2.0
//
// The maximum for training: a few channels of a window at a time, with the number of the tap where
// the first of equals stands.
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

// The largest elements of a window so far, and their taps: the first of equals, and a NaN, once
// taken, stays.
class FewWinners {
 public:
  explicit FewWinners(int count) : count_(count) {}

  void Begin(const float* src, int32_t tap) {
    std::copy(src, src + count_, highest_);
    std::fill(place_, place_ + count_, tap);
  }
  void Take(const float* src, int32_t tap) {
    for (int lane = 0; lane < count_; ++lane) {
      const float value = src[lane], before = highest_[lane];
      const bool stays = value <= before || before != before;
      highest_[lane] = stays ? before : value;
      place_[lane] = stays ? place_[lane] : tap;
    }
  }
  void Store(float* dst, uint8_t* places) const {
    for (int lane = 0; lane < count_; ++lane) {
      dst[lane] = highest_[lane];
      places[lane] = static_cast<uint8_t>(place_[lane]);
    }
  }

 private:
  const int count_;
  float highest_[kLanes];
  int32_t place_[kLanes];
};

// The same for kLanes channels.
class VectorWinners {
 public:
  explicit VectorWinners(int) {}

  void Begin(const float* src, int32_t tap) {
    for (int i = 0; i < kVectors; ++i) {
      highest_[i] = _mm_loadu_ps(src + 4 * i);
      place_[i] = _mm_set1_epi32(tap);
    }
  }
  void Take(const float* src, int32_t tap) {
    const __m128i taps = _mm_set1_epi32(tap);
    for (int i = 0; i < kVectors; ++i) {
      const __m128 value = _mm_loadu_ps(src + 4 * i), before = highest_[i];
      const __m128 stays = _mm_or_ps(_mm_cmple_ps(value, before), _mm_cmpunord_ps(before, before));
      highest_[i] = _mm_or_ps(_mm_and_ps(stays, before), _mm_andnot_ps(stays, value));
      const __m128i keeps = _mm_castps_si128(stays);
      place_[i] = _mm_or_si128(_mm_and_si128(keeps, place_[i]), _mm_andnot_si128(keeps, taps));
    }
  }
  void Store(float* dst, uint8_t* places) const {
    for (int i = 0; i < kVectors; ++i) _mm_storeu_ps(dst + 4 * i, highest_[i]);
    const __m128i words = _mm_packs_epi32(place_[0], place_[1]);
    _mm_storel_epi64(reinterpret_cast<__m128i*>(places), _mm_packus_epi16(words, words));
  }

 private:
  static constexpr int kVectors = kLanes / 4;
  static_assert(kVectors == 2, "Store() packs the places of two vectors");
  __m128 highest_[kVectors];
  __m128i place_[kVectors];
};

// Immutable.
class MaximumPlaces final : public Primitive {
 public:
  MaximumPlaces(PrimitiveInfo info, const PoolingDesc& desc)
      : Primitive(std::move(info)), layout_(desc) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* const src = args.Get<const float>(kArgSrc) + layout_.src_first;
    auto* const dst = args.Get<float>(kArgDst) + layout_.dst_first;
    auto* const places = args.Get<uint8_t>(kArgWorkspace) + layout_.dst_first;
    const auto& [depth, height, width] = layout_.axes;
    layout_.ForEachPair(team, [&](int64_t image, int64_t first, int64_t end) {
      for (int64_t d = 0; d < depth.out; ++d) {
        for (int64_t h = 0; h < height.out && !threading::Stopped(); ++h) {
          for (int64_t g = first; g < end; ++g) {
            const LaneGroup& group = layout_.groups[g];
            const float* const from = src + image * layout_.src_image + group.src;
            const int64_t at = image * layout_.dst_image + group.dst + d * depth.dst_stride +
                               h * height.dst_stride;
            group.count == kLanes
                ? RunRow<VectorWinners>(from, {d, h}, dst + at, places + at, kLanes)
                : RunRow<FewWinners>(from, {d, h}, dst + at, places + at, group.count);
          }
        }
      }
    });
  }

  // `row`: its depth and height.
  template <typename Winners>
  void RunRow(const float* src, const std::array<int64_t, 2>& row, float* dst, uint8_t* places,
              int count) const {
    const Axis& width = layout_.axes[2];
    for (int64_t w = 0; w < width.out; ++w) {
      RunWindow<Winners>(src, {row[0], row[1], w}, dst, places, count);
      dst += width.dst_stride;
      places += width.dst_stride;
    }
  }

  template <typename Winners>
  void RunWindow(const float* src, const std::array<int64_t, 3>& window, float* dst,
                 uint8_t* places, int count) const {
    const auto& [depth, height, width] = layout_.axes;
    const auto [d, h, w] = window;
    Winners winners(count);
    bool first = true;
    for (int64_t z = depth.Begin(d); z < depth.Begin(d) + depth.Taps(d); ++z) {
      for (int64_t y = height.Begin(h); y < height.Begin(h) + height.Taps(h); ++y) {
        const float* const row = src + z * depth.src_stride + y * height.src_stride;
        const int64_t number =
            (TapOf(depth, d, z) * height.kernel + TapOf(height, h, y)) * width.kernel;
        for (int64_t x = width.Begin(w); x < width.Begin(w) + width.Taps(w); ++x) {
          const auto tap = static_cast<int32_t>(number + TapOf(width, w, x));
          const float* const taken = row + x * width.src_stride;
          first ? winners.Begin(taken, tap) : winners.Take(taken, tap);
          first = false;
        }
      }
    }
    winners.Store(dst, places);
  }

  static int64_t TapOf(const Axis& axis, int64_t window, int64_t at) {
    return at - window * axis.stride + axis.padding;
  }

  const LaneLayout layout_;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveMaximumPlaces(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveDefaults(request.desc, request.attributes));
  if (!SavesPlaces(resolved)) return Unimplemented("is the maximum for training");
  ABSL_RETURN_IF_ERROR(RequireLanes(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateMaximumPlaces(
    const Request<PoolingDesc>& request) {
  return std::make_unique<MaximumPlaces>(InfoOf(request), request.desc);
}

}  // namespace tilewire::pooling
