// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/winograd/winograd_cost.h"

#include "engine/base/checked_math.h"
#include "engine/kernels/planes/plane_cost.h"
#include "engine/memory/winograd_layout.h"

namespace tilewire::convolution {
namespace {

// Weights of one point after the other come at a share of the memory's bandwidth: each part is
// waited for.
double WeightsBytesPerCycle(const VectorUnit& unit, const cpu::Machine& machine) {
  constexpr double kShareOfBandwidth = 0.8182;
  return kShareOfBandwidth * machine.MemoryBytesPerCycle(unit.bytes());
}

double TilesOf(const Geometry& geometry, int tile) {
  return 1.0 * DivUp(geometry.out[1], tile) * DivUp(geometry.out[2], tile);
}

// Instructions of vectors, at the rate of FMAs. 16 registers do not hold a block's points of
// F(4x4), whose rows go through memory in between.
double TransformsCycles(const Geometry& geometry, int tile, const VectorUnit& unit,
                        const cpu::Machine& machine) {
  constexpr double kTile = 400;  // besides its blocks of channels
  const double points = tile == 2 ? machine.transform_of_16_points : machine.transform_of_36_points;
  const double spilling = tile == 4 && unit.registers() < 32 ? machine.spilling : 1;
  const double block = tile == 2 ? 220 : 420 * spilling;  // of channels, input or output
  const double blocks = 1.0 * DivUp(geometry.ic, unit.lanes()) + DivUp(geometry.oc, unit.lanes());
  return TilesOf(geometry, tile) * (kTile + blocks * block) * points /
         machine.FmasPerCycle(unit.bytes());
}

// The cycles in which src and dst are read and written.
double TensorsCycles(const Geometry& geometry, const VectorUnit& unit,
                     const cpu::Machine& machine) {
  const auto bytes_of = [&](int64_t channels, const Spatial& size) {
    return 1.0 * RoundUp(channels, unit.lanes()) * size[1] * size[2] * sizeof(float);
  };
  return machine.TensorCycles(bytes_of(geometry.ic, geometry.in),
                              bytes_of(geometry.oc, geometry.out));
}

// Where the second cache holds weights, it holds the inputs and the sums of some tiles, too. Else
// these go through the third one, and for each block of tiles the weights come from there again.
double ScratchCycles(const PlaneProductShape& shape, int64_t points, double weights) {
  constexpr double kCached = 1 << 20, kByte = 0.37;
  constexpr int64_t kBlockTiles = 128;
  const double groups = DivUp(shape.rows, int64_t{kPlaneRows});
  const int64_t group_tiles = shape.rows <= kPlaneLanes ? kPlaneLanes : kPlaneRows;
  const PlaneLayout layout = shape.WeightsLayout(points);
  const auto point_bytes = static_cast<double>(layout.TapSteps() * layout.StepBytes() +
                                               group_tiles * layout.Blocks() * kPlaneLineBytes);
  if (weights <= kCached) return 0;
  return groups * static_cast<double>(points) * point_bytes * kByte +
         RereadingCycles(weights, static_cast<double>(DivUp(shape.rows, kBlockTiles) - 1));
}

}  // namespace

double WinogradCycles(const Geometry& geometry, int tile, const VectorUnit& unit,
                      const cpu::Machine& machine) {
  constexpr double kShareOfPeak = 0.94;
  const double weights = 1.0 * (tile + 2) * (tile + 2) * RoundUp(geometry.ic, unit.lanes()) *
                         RoundUp(geometry.oc, unit.lanes());
  const double fmas = TilesOf(geometry, tile) * weights / unit.lanes();
  return TransformsCycles(geometry, tile, unit, machine) + TensorsCycles(geometry, unit, machine) +
         machine.WhileReading(fmas / kShareOfPeak / machine.FmasPerCycle(unit.bytes()),
                              weights * sizeof(float) / WeightsBytesPerCycle(unit, machine));
}

double WinogradCyclesByPlanes(const Geometry& geometry, int tile, const cpu::Machine& machine) {
  const int64_t points = WinogradLayout{.tile = tile}.points();
  const VectorUnit unit = VectorUnit::Of(cpu::Isa::kAmx);
  const PlaneProductShape shape = {.planes = PlanesFor(Precision::kExact),
                                   .rows = static_cast<int64_t>(TilesOf(geometry, tile)),
                                   .channels = RoundUp(geometry.ic, int64_t{kPlaneLanes}),
                                   .outputs = geometry.oc,
                                   .weights_are_split = true};
  const auto weights = static_cast<double>(shape.WeightsLayout(points).SizeBytes());
  return static_cast<double>(points) * PlaneArithmeticCycles(shape) +
         PlaneWeightsCycles(weights, machine) + ScratchCycles(shape, points, weights) +
         TransformsCycles(geometry, tile, unit, machine) + TensorsCycles(geometry, unit, machine);
}

double WinogradWeightsCycles(int64_t bytes) {
  constexpr double kCyclesOfFloat = 5, kImages = 8;
  return static_cast<double>(bytes / int64_t{sizeof(float)}) * kCyclesOfFloat / kImages;
}

}  // namespace tilewire::convolution
