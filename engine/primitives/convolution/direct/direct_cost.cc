// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/direct_cost.h"

#include <algorithm>
#include <set>

#include "engine/base/checked_math.h"
#include "engine/primitives/convolution/direct/grouped_generator.h"
#include "engine/primitives/convolution/direct/grouped_lanes.h"

namespace tilewire::convolution {
namespace {

double CountOf(const Spatial& size) { return static_cast<double>(*CheckedProduct(size)); }

constexpr double kShareOfPeak = 0.92;

// The cycles in which the weights of whole vectors of outputs are read. Where groups are narrow the
// other rows have fewer of them: that is left out, as products are most of the time there.
double WeightsCycles(const Geometry& geometry, const VectorUnit& unit,
                     const cpu::Machine& machine) {
  const int64_t outputs = RoundUp(geometry.oc, int64_t{unit.lanes()});
  const double numbers =
      static_cast<double>(geometry.groups * geometry.ic * outputs) * CountOf(geometry.kernel);
  return numbers * sizeof(float) / machine.MemoryBytesPerCycle(unit.bytes());
}

// The cycles in which tensors of f32 are read and written, dst in blocks of so many channels.
double TensorsCycles(const Geometry& geometry, int64_t lanes, const cpu::Machine& machine) {
  const int64_t channels = RoundUp(geometry.groups * geometry.oc, lanes);
  const double src = static_cast<double>(geometry.groups * geometry.ic) * CountOf(geometry.in);
  const double dst = static_cast<double>(channels) * CountOf(geometry.out);
  return machine.TensorCycles(src * sizeof(float), dst * sizeof(float));
}

// Pixels of a row of src that one output reads, those of its neighbours in a tile being shared.
double PixelsPerOutput(const Geometry& geometry, int64_t tile) {
  std::set<int64_t> pixels;
  for (int64_t p = 0; p < tile; ++p) {
    for (int64_t tap = 0; tap < geometry.kernel[2]; ++tap)
      pixels.insert(p * geometry.stride[2] + tap * geometry.tap_step[2]);
  }
  return static_cast<double>(pixels.size()) / static_cast<double>(tile);
}

// Instructions of vectors: one per source and pixel, and per multiplication, in which broadcasts
// may be operands where windows have no width; a few begin a step.
double StepInstructions(const Geometry& geometry, const VectorUnit& unit, const StepForm& form) {
  const int64_t most = MostGroupedPixels(unit, geometry.kernel[2], form.sources, /*scratch=*/1);
  const int64_t row = std::max<int64_t>(1, geometry.out[2]);
  const int64_t tile = DivUp(row, DivUp(row, most));
  const double width = static_cast<double>(geometry.kernel[2]);
  const double begin = (5.0 + 3 * form.sources + width) / 4 / static_cast<double>(tile);
  if (form.broadcasts && geometry.kernel[2] == 1 && unit.has_masks()) return form.sources + begin;
  return form.sources * PixelsPerOutput(geometry, tile) + width + begin;
}

// Blocks of output channels after which the lanes' groups repeat.
int64_t KindsOfBlocks(const Geometry& geometry, const VectorUnit& unit) {
  const int64_t lanes = unit.lanes();
  return std::min(GroupedLanes::OutputsOfPeriod(geometry, unit.lanes()) / lanes,
                  DivUp(geometry.groups * geometry.oc, lanes));
}

}  // namespace

double DirectCycles(const Geometry& geometry, const VectorUnit& unit, const cpu::Machine& machine) {
  constexpr double kShareInNarrowGroups = 0.85;
  constexpr double kCopy = 7;  // instructions, of a block of a pixel
  const int64_t lanes = unit.lanes();
  const double pixels = CountOf(geometry.out), groups = static_cast<double>(geometry.groups);
  const double inputs = DivUp(geometry.ic, lanes), outputs = DivUp(geometry.oc, lanes);
  const bool copies_src = geometry.groups > 1 && geometry.ic % lanes != 0;
  const bool copies_dst = geometry.groups > 1 && geometry.oc % lanes != 0;
  const bool is_narrow = copies_src || copies_dst || (geometry.groups > 1 && geometry.oc <= lanes);
  double instructions =
      outputs * static_cast<double>(geometry.ic) * CountOf(geometry.kernel) * pixels;
  if (is_narrow) instructions /= kShareInNarrowGroups;
  if (copies_src) instructions += kCopy * inputs * CountOf(geometry.in);
  if (copies_dst) instructions += kCopy * outputs * pixels;
  return TensorsCycles(geometry, lanes, machine) +
         machine.WhileReading(
             groups * instructions / kShareOfPeak / machine.FmasPerCycle(unit.bytes()),
             WeightsCycles(geometry, unit, machine));
}

bool FitsTablesOfLanes(const Geometry& geometry, const VectorUnit& unit) {
  constexpr int64_t kMostSteps = 4096;  // of all tables
  return geometry.ic <= kMostSteps / KindsOfBlocks(geometry, unit);
}

double GroupedCycles(const Geometry& geometry, const VectorUnit& unit,
                     const cpu::Machine& machine) {
  const int64_t blocks = DivUp(geometry.groups * geometry.oc, unit.lanes());
  const int64_t kinds = KindsOfBlocks(geometry, unit);
  const GroupedLanes tables(geometry, unit, {});
  double instructions[StepForm::kForms], all = 0;
  for (int i = 0; i < StepForm::kForms; ++i)
    instructions[i] = StepInstructions(geometry, unit, StepForm::At(i));
  for (int64_t block = 0; block < kinds; ++block) {
    for (int i = 0; i < StepForm::kForms; ++i)
      all += static_cast<double>(tables.TableOf(block).counts[i]) * instructions[i];
  }
  all *= static_cast<double>(blocks) / static_cast<double>(kinds) * CountOf(geometry.out);
  all *= static_cast<double>(geometry.kernel[0] * geometry.kernel[1]);
  return TensorsCycles(geometry, unit.lanes(), machine) +
         machine.WhileReading(all / kShareOfPeak / machine.FmasPerCycle(unit.bytes()),
                              WeightsCycles(geometry, unit, machine));
}

double FewOutputsCycles(const Geometry& geometry, const VectorUnit& unit,
                        const cpu::Machine& machine) {
  constexpr double kLaneSums = 3, kBytesPerCycle = 32;
  const double lanes = unit.lanes(), blocks = DivUp(geometry.ic, unit.lanes());
  const double taps = blocks * CountOf(geometry.kernel);
  const double outputs = static_cast<double>(geometry.groups * geometry.oc) * CountOf(geometry.out);
  const double instructions = outputs * (taps * (1 + 1 / lanes) + kLaneSums);
  const double vectors = outputs * taps / static_cast<double>(geometry.kernel[2]) *
                         PixelsPerOutput(geometry, unit.lanes());
  return TensorsCycles(geometry, /*lanes=*/1, machine) +
         machine.WhileReading(instructions / kShareOfPeak / machine.FmasPerCycle(unit.bytes()) +
                                  vectors * unit.bytes() / kBytesPerCycle,
                              WeightsCycles(geometry, unit, machine));
}

}  // namespace tilewire::convolution
