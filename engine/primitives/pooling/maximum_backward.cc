// SPDX-License-Identifier: Apache-2.0
//
// Backward of a maximum over planes by generated code (maximum_gradient_generator.h): a call for 16
// neighbouring channels of an image. A diff_src that no cache of a core holds is written past the
// caches where its pixels are lines: what is about to be overwritten need not be read then.
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/cache_line.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/store_forms.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/pooling/lanes.h"
#include "engine/primitives/pooling/maximum_gradient_generator.h"
#include "engine/threading/stop.h"

namespace tilewire::pooling {
namespace {

constexpr int64_t kBlock = MaximumGradientGenerator::kLanes;
static_assert(kBlock == kLanesOfPair);

bool IsPlane(const Axis& depth) {
  return depth.in == 1 && depth.out == 1 && depth.kernel == 1 && depth.padding == 0;
}

bool AllAreBlocks(const LaneLayout& layout) {
  const auto count = static_cast<int64_t>(layout.groups.size());
  for (int64_t g = 0; g < count; g += 2) {
    if (!layout.IsBlock(g, std::min(g + 2, count))) return false;
  }
  return count > 0;
}

// Displacements in code are those of a row, and of one row from the next. Tiles at the borders of
// wide windows would be many.
bool FitsCode(const std::array<Axis, 3>& axes) {
  constexpr int64_t kFarthest = std::numeric_limits<int32_t>::max() / sizeof(float) / 2;
  constexpr int64_t kWidestWindow = 16;
  const auto fits = [&](int64_t stride, int64_t count) {
    const std::optional<int64_t> span = CheckedMul(stride, count);
    return span && *span <= kFarthest;
  };
  const auto& [depth, rows, columns] = axes;
  return columns.kernel <= kWidestWindow &&
         columns.stride <= MaximumGradientGenerator::kMostPixels &&
         fits(columns.src_stride, columns.in) && fits(columns.dst_stride, columns.out) &&
         fits(rows.src_stride, 1) && fits(rows.dst_stride, 1) && rows.stride <= kFarthest / 256;
}

std::vector<WindowRows> RowsOf(const Axis& axis, int64_t kernel_width) {
  std::vector<WindowRows> rows;
  for (int64_t y = 0; y < axis.in; ++y) {
    const int64_t reach = y + axis.padding;
    const int64_t first = reach < axis.kernel ? 0 : (reach - axis.kernel) / axis.stride + 1;
    const int64_t end = std::min(reach / axis.stride + 1, axis.out);
    rows.push_back({first * axis.dst_stride, std::max<int64_t>(0, end - first),
                    (reach - first * axis.stride) * kernel_width});
  }
  return rows;
}

struct MaximumBackward {
  void Run(const DrivenRun& run) const {
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    const auto* const places = run.args.Get<const uint8_t>(kArgWorkspace) + layout.dst_first;
    auto* const diff_src = run.First<float>(kArgDiffSrc);
    layout.ForEachPair(run.team, [&](int64_t image, int64_t first, int64_t) {
      if (threading::Stopped()) return;
      const LaneGroup& lanes = layout.groups[first];
      const int64_t at = image * layout.dst_image + lanes.dst;
      const MaximumGradientArgs args = {.diff_dst = diff_dst + at,
                                        .places = places + at,
                                        .diff_src = diff_src + image * layout.src_image + lanes.src,
                                        .rows = rows.data(),
                                        .count = static_cast<int64_t>(rows.size())};
      code.For(args.diff_src).entry<MaximumGradientGenerator::Function>()(&args);
    });
  }
  int64_t code_bytes() const { return static_cast<int64_t>(code.code_bytes()); }

  LaneLayout layout;
  std::vector<WindowRows> rows;
  jit::StoreForms<MaximumGradientGenerator> code;
};

}  // namespace

absl::StatusOr<PoolingDesc> ResolveMaximumBackward(const Request<PoolingDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(PoolingDesc resolved, ResolveReferenceBackward(request));
  if (resolved.algorithm != PoolingAlgorithm::kMax)
    return Unimplemented("takes maxima, not averages");
  ABSL_RETURN_IF_ERROR(RequireLanes(resolved));
  const LaneLayout layout(resolved);
  if (!IsPlane(layout.axes[0])) return Unimplemented("takes windows of planes");
  if (!AllAreBlocks(layout)) return Unimplemented("takes channels in blocks of ", kBlock);
  if (!FitsCode(layout.axes))
    return Unimplemented("windows are too wide, or rows too far apart, for code");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateMaximumBackward(
    const Request<PoolingDesc>& request) {
  const PoolingDesc& desc = request.desc;
  MaximumBackward driver{.layout = LaneLayout(desc)};
  const auto& [depth, height, width] = driver.layout.axes;
  driver.rows = RowsOf(height, width.kernel);
  MaximumGradientPlane plane{.rows = height, .columns = width};
  const auto compile = [&] {
    return jit::Compile<MaximumGradientGenerator>(request.facts.name, plane);
  };
  ABSL_ASSIGN_OR_RETURN(driver.code.plain, compile());
  const bool is_aligned =
      width.src_stride == kBlock && KeepAligned({height.src_stride}, kBlock * sizeof(float));
  if (desc.src.SizeBytes() > kLargeGradient && is_aligned) {
    plane.streams = true;
    ABSL_ASSIGN_OR_RETURN(driver.code.streaming, compile());
  }
  return MakeDriven(BackwardInfoOf(request), std::move(driver));
}

}  // namespace tilewire::pooling
