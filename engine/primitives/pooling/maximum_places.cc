// SPDX-License-Identifier: Apache-2.0
//
// The maximum for training: a few channels of a window at a time, with the number of the tap where
// the first of equals stands.
#include <algorithm>
#include <array>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/pooling/lanes.h"
#include "engine/threading/stop.h"

namespace tilewire::pooling {
namespace {

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
    const auto groups = static_cast<int64_t>(layout_.groups.size());
    team.ParallelFor(layout_.images * groups, [&](int64_t index) {
      const LaneGroup& group = layout_.groups[index % groups];
      const int64_t image = index / groups;
      const float* const from = src + image * layout_.src_image + group.src;
      const int64_t at = image * layout_.dst_image + group.dst;
      group.count == kLanes ? RunGroup<kLanes>(from, dst + at, places + at, kLanes)
                            : RunGroup<0>(from, dst + at, places + at, group.count);
    });
  }

  template <int kCount>
  void RunGroup(const float* src, float* dst, uint8_t* places, int count) const {
    const auto& [depth, height, width] = layout_.axes;
    for (int64_t d = 0; d < depth.out; ++d) {
      for (int64_t h = 0; h < height.out && !threading::Stopped(); ++h) {
        for (int64_t w = 0; w < width.out; ++w) {
          const int64_t at = d * depth.dst_stride + h * height.dst_stride + w * width.dst_stride;
          RunWindow<kCount>(src, {d, h, w}, dst + at, places + at, count);
        }
      }
    }
  }

  // `kCount` is `count`, or 0 where that is not known.
  template <int kCount>
  void RunWindow(const float* src, const std::array<int64_t, 3>& window, float* dst,
                 uint8_t* places, int count) const {
    const int lanes = kCount != 0 ? kCount : count;
    const auto& [depth, height, width] = layout_.axes;
    const auto [d, h, w] = window;
    float highest[kLanes];
    int32_t place[kLanes];
    bool first = true;
    for (int64_t z = depth.Begin(d); z < depth.Begin(d) + depth.Taps(d); ++z) {
      for (int64_t y = height.Begin(h); y < height.Begin(h) + height.Taps(h); ++y) {
        const float* const row = src + z * depth.src_stride + y * height.src_stride;
        const int64_t number =
            (TapOf(depth, d, z) * height.kernel + TapOf(height, h, y)) * width.kernel;
        for (int64_t x = width.Begin(w); x < width.Begin(w) + width.Taps(w); ++x) {
          const auto tap = static_cast<int32_t>(number + TapOf(width, w, x));
          Take<kCount>(row + x * width.src_stride, tap, first, lanes, highest, place);
          first = false;
        }
      }
    }
    for (int lane = 0; lane < lanes; ++lane) {
      dst[lane] = highest[lane];
      places[lane] = static_cast<uint8_t>(place[lane]);
    }
  }

  static int64_t TapOf(const Axis& axis, int64_t window, int64_t at) {
    return at - window * axis.stride + axis.padding;
  }

  // The larger ones; a NaN, once taken, stays.
  template <int kCount>
  static void Take(const float* src, int32_t tap, bool first, int count, float* highest,
                   int32_t* place) {
    const int lanes = kCount != 0 ? kCount : count;
    if (first) {
      std::copy(src, src + lanes, highest);
      std::fill(place, place + lanes, tap);
      return;
    }
    for (int lane = 0; lane < lanes; ++lane) {
      const float value = src[lane], before = highest[lane];
      const bool stays = value <= before || before != before;
      highest[lane] = stays ? before : value;
      place[lane] = stays ? place[lane] : tap;
    }
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
