// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/grouped_choice.h"

#include <algorithm>
#include <limits>
#include <set>

#include "engine/base/checked_math.h"
#include "engine/primitives/convolution/direct/grouped_generator.h"
#include "engine/primitives/convolution/direct/grouped_lanes.h"

namespace tilewire::convolution {
namespace {

// Pixels of a row of src that one output reads, those of its neighbours in a tile being shared.
double PixelsPerOutput(const Geometry& geometry, int64_t tile) {
  std::set<int64_t> pixels;
  for (int64_t p = 0; p < tile; ++p) {
    for (int64_t tap = 0; tap < geometry.kernel[2]; ++tap)
      pixels.insert(p * geometry.stride[2] + tap * geometry.tap_step[2]);
  }
  return static_cast<double>(pixels.size()) / static_cast<double>(tile);
}

// One cycle per source and pixel, and per multiplication, in which broadcasts may be operands where
// windows have no width; a few instructions begin a step.
double StepCycles(const Geometry& geometry, const VectorUnit& unit, const StepForm& form) {
  const int64_t most = MostGroupedPixels(unit, geometry.kernel[2], form.sources, /*scratch=*/1);
  const int64_t row = std::max<int64_t>(1, geometry.out[2]);
  const int64_t tile = DivUp(row, DivUp(row, most));
  const double width = static_cast<double>(geometry.kernel[2]);
  const double begin = (5.0 + 3 * form.sources + width) / 4 / static_cast<double>(tile);
  if (form.broadcasts && geometry.kernel[2] == 1 && unit.has_masks()) return form.sources + begin;
  return form.sources * PixelsPerOutput(geometry, tile) + width + begin;
}

}  // namespace

double BlockedGroupsCycles(const Geometry& geometry, const VectorUnit& unit) {
  constexpr double kShareOfPeak = 0.85, kCyclesOfCopy = 7;  // of a block of a pixel
  const int64_t lanes = unit.lanes(), taps = *CheckedProduct(geometry.kernel);
  const double outputs = DivUp(geometry.oc, lanes), inputs = DivUp(geometry.ic, lanes);
  const double src_pixels =
      static_cast<double>(*CheckedProduct(geometry.in)) /
      static_cast<double>(std::max<int64_t>(1, *CheckedProduct(geometry.out)));
  double cycles = outputs * static_cast<double>(geometry.ic * taps) / kShareOfPeak;
  if (geometry.ic % lanes != 0) cycles += kCyclesOfCopy * inputs * src_pixels;
  if (geometry.oc % lanes != 0) cycles += kCyclesOfCopy * outputs;
  return static_cast<double>(geometry.groups) * cycles;
}

double GroupedCycles(const Geometry& geometry, const VectorUnit& unit) {
  constexpr int64_t kMostSteps = 4096;  // of all tables
  const int64_t lanes = unit.lanes(), outputs = geometry.groups * geometry.oc;
  const int64_t period = GroupedLanes::OutputsOfPeriod(geometry, unit.lanes()) / lanes;
  const int64_t blocks = DivUp(outputs, lanes), kinds = std::min(period, blocks);
  if (geometry.ic > kMostSteps / kinds) return std::numeric_limits<double>::infinity();
  const GroupedLanes tables(geometry, unit, {});
  double cycles[StepForm::kForms], all = 0;
  for (int i = 0; i < StepForm::kForms; ++i)
    cycles[i] = StepCycles(geometry, unit, StepForm::At(i));
  for (int64_t block = 0; block < kinds; ++block) {
    for (int i = 0; i < StepForm::kForms; ++i)
      all += static_cast<double>(tables.TableOf(block).counts[i]) * cycles[i];
  }
  return all * static_cast<double>(blocks) / static_cast<double>(kinds) *
         static_cast<double>(geometry.kernel[0] * geometry.kernel[1]);
}

absl::Status RequireNarrowGroups(const Geometry& geometry, const VectorUnit& unit) {
  const int lanes = unit.lanes();
  if (geometry.groups < 2 || geometry.IsDepthwise() || geometry.ic < 1 || geometry.oc < 1 ||
      (geometry.ic % lanes == 0 && geometry.oc % lanes == 0)) {
    return absl::UnimplementedError("is for groups that do not begin with blocks of channels");
  }
  if (GroupedCycles(geometry, unit) >= BlockedGroupsCycles(geometry, unit))
    return absl::UnimplementedError("is slower than copies of such wide groups");
  return absl::OkStatus();
}

}  // namespace tilewire::convolution
