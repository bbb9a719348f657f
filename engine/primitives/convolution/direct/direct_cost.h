// SPDX-License-Identifier: Apache-2.0
//
// Estimated cycles per image of the f32 rows that add up products one by one: dense, of narrow
// groups, of few outputs; each with the traffic of src and dst. implementation.h says what a cost
// is. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_COST_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_COST_H_

#include "engine/cpu/machine.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Lanes of output channels, of groups in blocks of their own: products, weights from memory as in a
// whole model, and copies of groups that do not begin with blocks.
double DirectCycles(const Geometry& geometry, const VectorUnit& unit, const cpu::Machine& machine);

// Lanes of output channels of all groups (grouped_generator.h). The tables of lanes are not too
// large (FitsTablesOfLanes()).
double GroupedCycles(const Geometry& geometry, const VectorUnit& unit, const cpu::Machine& machine);
bool FitsTablesOfLanes(const Geometry& geometry, const VectorUnit& unit);

// Lanes of input channels: a step for each output channel, tap and block of input channels, one in
// `lanes` to load weights, and three to add up an output's lanes. Each output channel reads src
// again, of which a tile of one channel leaves nothing in the first cache for the next: 32 bytes
// per cycle come from the second one, which no arithmetic hides, as all of it waits for loads.
double FewOutputsCycles(const Geometry& geometry, const VectorUnit& unit,
                        const cpu::Machine& machine);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_DIRECT_COST_H_
