// SPDX-License-Identifier: Apache-2.0
//
// Row-major tensors, some rows of windows per piece of work. Windows are cut to the source before
// their taps are visited, so that taps outside it cost nothing.
#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/max_window/implementations.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/ranges.h"
#include "engine/threading/stop.h"

namespace tilewire::max_window {
namespace {

// One spatial dimension.
struct WindowAxis {
  int64_t src = 1, dst = 1, kernel = 1, stride = 1, step = 1, left = 0;

  // Taps of a window beyond those lie outside the source.
  int64_t MostInside() const { return std::min(kernel, src); }

  // The taps [first, end) of the window at index i that lie inside the source.
  std::pair<int64_t, int64_t> Inside(int64_t i) const {
    const int64_t start = i * stride - left;
    const int64_t first = start < 0 ? DivUp(-start, step) : 0;
    const int64_t end = start >= src ? 0 : DivUp(src - start, step);
    return {std::min(first, kernel), std::min(end, kernel)};
  }
};

// Three spatial dimensions, the first of them 1 where there are fewer. Immutable.
class PlainRows final : public SingleSource<float> {
 public:
  PlainRows(PrimitiveInfo info, const MaxWindowDesc& desc)
      : SingleSource(std::move(info)),
        result_(desc.result),
        planes_(desc.src.dim(0) * desc.src.dim(1)) {
    const size_t spatial = desc.kernel.size(), missing = axes_.size() - spatial;
    for (size_t i = 0; i < spatial; ++i) {
      const int d = static_cast<int>(i) + 2;
      axes_[missing + i] = {desc.src.dim(d), desc.dst.dim(d),       desc.kernel[i],
                            desc.strides[i], desc.dilations[i] + 1, desc.padding_left[i]};
    }
  }

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const auto& [z, y, x] = axes_;
    const int64_t rows = planes_ * z.dst * y.dst;
    const int64_t work = x.dst * z.MostInside() * y.MostInside() * x.MostInside();
    threading::ParallelForItems(team, rows, threading::ItemsAtOnce(kElementsAtOnce, work),
                                [&](int64_t row) { RunRow(row, src, dst); });
  }

  void RunRow(int64_t row, const float* src, float* dst) const {
    const auto& [z, y, x] = axes_;
    const int64_t plane = row / (z.dst * y.dst);
    const int64_t from = plane * z.src * y.src * x.src;
    threading::StopCheck stopped;
    for (int64_t i = 0; i < x.dst && !stopped(); ++i) {
      const int64_t best = PlaceOfMaximum(src + from, row / y.dst % z.dst, row % y.dst, i);
      dst[row * x.dst + i] = ResultOf(src, from, best);
    }
  }

  // Its offset in the plane; -1 where no element is inside.
  int64_t PlaceOfMaximum(const float* plane, int64_t k, int64_t j, int64_t i) const {
    const auto& [z, y, x] = axes_;
    const auto [z_first, z_end] = z.Inside(k);
    const auto [y_first, y_end] = y.Inside(j);
    const auto [x_first, x_end] = x.Inside(i);
    const bool large = (y_end - y_first) * (x_end - x_first) > kElementsAtOnce;
    int64_t best = -1;
    for (int64_t c = z_first; c < z_end; ++c) {
      for (int64_t b = y_first; b < y_end; ++b) {
        const int64_t line =
            (k * z.stride - z.left + c * z.step) * y.src + (j * y.stride - y.left + b * y.step);
        if (large && threading::Stopped()) return best;
        for (int64_t a = x_first; a < x_end; ++a) {
          const int64_t at = line * x.src + (i * x.stride - x.left + a * x.step);
          const bool beats = best < 0 || plane[at] > plane[best] ||
                             (std::isnan(plane[best]) && !std::isnan(plane[at]));
          if (beats) best = at;
        }
      }
    }
    return best;
  }

  float ResultOf(const float* src, int64_t from, int64_t best) const {
    if (result_ == MaxWindowResult::kElement)
      return best < 0 ? -std::numeric_limits<float>::infinity() : src[from + best];
    if (best < 0) return -1;
    if (result_ == MaxWindowResult::kIndex) return static_cast<float>(from + best);
    const auto& [z, y, x] = axes_;
    const int64_t a = best % x.src, b = best / x.src % y.src, c = best / (x.src * y.src);
    return static_cast<float>(from + (a * y.src + b) * z.src + c);
  }

  static constexpr int64_t kElementsAtOnce = 16384;  // looked at in one piece of work

  const MaxWindowResult result_;
  const int64_t planes_;
  std::array<WindowAxis, 3> axes_;
};

}  // namespace

absl::StatusOr<MaxWindowDesc> ResolvePlainRows(const Request<MaxWindowDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(MaxWindowDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(RequireRowMajor(resolved.src));
  ABSL_RETURN_IF_ERROR(RequireRowMajor(resolved.dst));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlainRows(const Request<MaxWindowDesc>& request) {
  return std::make_unique<PlainRows>(InfoOf(request), request.desc);
}

}  // namespace tilewire::max_window
