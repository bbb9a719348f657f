// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/winograd/winograd_choice.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "engine/kernels/planes/plane_cost.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/memory/winograd_layout.h"
#include "engine/primitives/convolution/planes/plane_windows.h"

namespace tilewire::convolution {
namespace {

// Cycles, fitted to measurements on a Cascade Lake core. Weights come from memory, as they do in a
// whole model.
constexpr double kDirectShareOfPeak = 0.92, kProductShareOfPeak = 0.94;
constexpr double kDirectWeightsByte = 0.18, kWinogradWeightsByte = 0.22;
constexpr double kTile = 200;  // per tile, besides its blocks of channels
// For one block of channels of one tile, input or output.
constexpr double TransformCycles(int tile) { return tile == 2 ? 110 : 210; }
// Weights that are 1.8 or 4 times as large have to be worth their memory and their packing.
constexpr double kWorthwhile = 1.1;
constexpr int kExactPlanes = PlanesFor(Precision::kExact);

VectorUnit UnitOfTiles() { return VectorUnit::Of(cpu::Isa::kAmx); }

double TilesOf(const Geometry& geometry, int tile) {
  return 1.0 * DivUp(geometry.out[1], tile) * DivUp(geometry.out[2], tile);
}

double DirectCycles(const Geometry& geometry, const VectorUnit& unit) {
  const double weights = 9.0 * geometry.ic * RoundUp(geometry.oc, unit.lanes());
  const double products = weights * geometry.out[1] * geometry.out[2];
  return products / (2 * unit.lanes()) / kDirectShareOfPeak +
         weights * sizeof(float) * kDirectWeightsByte;
}

double TransformsCycles(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double blocks = 1.0 * DivUp(geometry.ic, unit.lanes()) + DivUp(geometry.oc, unit.lanes());
  return TilesOf(geometry, tile) * (kTile + blocks * TransformCycles(tile));
}

double WinogradCycles(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double weights = 1.0 * (tile + 2) * (tile + 2) * RoundUp(geometry.ic, unit.lanes()) *
                         RoundUp(geometry.oc, unit.lanes());
  return TilesOf(geometry, tile) * weights / (2 * unit.lanes()) / kProductShareOfPeak +
         TransformsCycles(geometry, tile, unit) + weights * sizeof(float) * kWinogradWeightsByte;
}

double FasterWinogradCycles(const Geometry& geometry, const VectorUnit& unit) {
  return std::min(WinogradCycles(geometry, 2, unit), WinogradCycles(geometry, 4, unit));
}

// With weights that were split when a model was loaded.
double CyclesByPlanes(PlaneProductShape shape, int64_t products) {
  shape.weights_are_split = true;
  const double weights = static_cast<double>(shape.WeightsLayout(products).SizeBytes());
  return static_cast<double>(products) * PlaneCycles(shape) + weights * kWinogradWeightsByte;
}

double DirectCyclesByPlanes(const Geometry& geometry, int planes) {
  return CyclesByPlanes(PlaneShapeOf(geometry, planes), 1);
}

double WinogradCyclesByPlanes(const Geometry& geometry, int tile) {
  const WinogradLayout layout{.tile = tile};
  const PlaneProductShape shape = {.planes = kExactPlanes,
                                   .rows = static_cast<int64_t>(TilesOf(geometry, tile)),
                                   .channels = RoundUp(geometry.ic, int64_t{kPlaneLanes}),
                                   .outputs = geometry.oc};
  return CyclesByPlanes(shape, layout.points()) + TransformsCycles(geometry, tile, UnitOfTiles());
}

absl::Status Slower(double mine, absl::string_view what, double other) {
  return absl::UnimplementedError(absl::StrCat("is estimated at ", static_cast<int64_t>(mine),
                                               " cycles per image, ", what, " at ",
                                               static_cast<int64_t>(other)));
}

absl::Status SlowerTile(double mine, int other_tile, double other) {
  return Slower(mine, absl::StrCat("F(", other_tile, "x", other_tile, ", 3x3)"), other);
}

}  // namespace

bool SuitsWinograd(const ConvolutionDesc& desc, const Geometry& geometry) {
  const Spatial ones = {1, 1, 1};
  return desc.algorithm == ConvolutionAlgorithm::kAuto && desc.src.rank() == 4 &&
         geometry.kernel == Spatial{1, 3, 3} && geometry.stride == ones &&
         geometry.tap_step == ones && !geometry.grouped_weights && geometry.batch > 0;
}

absl::Status RequireFasterThanDirect(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double mine = WinogradCycles(geometry, tile, unit);
  const double direct = DirectCycles(geometry, unit);
  if (mine * kWorthwhile <= direct) return absl::OkStatus();
  return Slower(mine, "the direct convolution", direct);
}

absl::Status RequireFasterTile(const Geometry& geometry, int tile, const VectorUnit& unit) {
  const double mine = WinogradCycles(geometry, tile, unit);
  const int other_tile = 6 - tile;
  const double other = WinogradCycles(geometry, other_tile, unit);
  return other < mine ? SlowerTile(mine, other_tile, other) : absl::OkStatus();
}

absl::Status RequireFasterByPlanes(const Geometry& geometry, int tile, Precision precision,
                                   bool pools) {
  const double mine = WinogradCyclesByPlanes(geometry, tile);
  const int other_tile = 6 - tile;
  const double other = WinogradCyclesByPlanes(geometry, other_tile);
  if (other < mine) return SlowerTile(mine, other_tile, other);
  const double vectors = FasterWinogradCycles(geometry, UnitOfTiles());
  if (mine * kWorthwhile > vectors) return Slower(mine, "Winograd's by f32", vectors);
  if (pools) return absl::OkStatus();  // no direct convolution does
  const double direct = std::min(DirectCycles(geometry, UnitOfTiles()),
                                 DirectCyclesByPlanes(geometry, PlanesFor(precision)));
  if (mine * kWorthwhile > direct) return Slower(mine, "the direct convolution", direct);
  return absl::OkStatus();
}

absl::Status RequirePlanesFasterThanWinograd(const Geometry& geometry) {
  const double mine = DirectCyclesByPlanes(geometry, kExactPlanes);
  const double other = FasterWinogradCycles(geometry, UnitOfTiles());
  return other < mine ? Slower(mine, "Winograd's", other) : absl::OkStatus();
}

absl::Status RequirePairsFasterThanWinograd(const Geometry& geometry, const VectorUnit& unit) {
  // Measured on a Zen 4 core. A line is 32 channels of a pixel, which are rounded first.
  constexpr double kFasterThanDirect = 1.75, kLine = 24;
  const double lines = 1.0 * DivUp(geometry.ic, 32) * geometry.in[1] * geometry.in[2];
  const double mine = DirectCycles(geometry, unit) / kFasterThanDirect + kLine * lines;
  const double other = FasterWinogradCycles(geometry, unit);
  return other < mine ? Slower(mine, "Winograd's", other) : absl::OkStatus();
}

}  // namespace tilewire::convolution
