// SPDX-License-Identifier: Apache-2.0
//
// Estimates where a convolution with few outputs is faster with lanes of input channels, whose sums
// are added up per output, than with lanes of outputs. The shape and the unit decide. Pure.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_CHOICE_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_CHOICE_H_

#include "absl/status/status.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

// Per pixel the row takes a step for each output channel, tap and block of input channels, and
// three to add up an output's lanes.
//   kUnimplemented  more outputs, few pixels, or groups that do not begin with blocks of channels
absl::Status RequireFewOutputs(const Geometry& geometry, const VectorUnit& unit);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_FEW_OUTPUTS_CHOICE_H_
