// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles per image of Winograd's rows, by vectors and by planes of bf16 on matrix tiles.
// implementation.h says what a cost is. Pure functions, for a 3x3 convolution with stride 1.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_COST_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_COST_H_

#include <cstdint>

#include "engine/cpu/machine.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// `tile`: 2 or 4.
double WinogradCycles(const Geometry& geometry, int tile, const VectorUnit& unit,
                      const cpu::Machine& machine);

// With weights that were split when a model was loaded.
double WinogradCyclesByPlanes(const Geometry& geometry, int tile, const cpu::Machine& machine);

// Training adds to either, for weights of so many bytes, the time in which those that an update has
// changed are transformed, written and read: the share of one of 8 images, which a batch may have.
double WinogradWeightsCycles(int64_t bytes);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_WINOGRAD_WINOGRAD_COST_H_
