// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_

#include "engine/primitives/interpolate/interpolate.h"

namespace tilewire::interpolate {

TILEWIRE_ROW(InterpolateDesc, DenseRows);

TILEWIRE_ROW(InterpolateDesc, Reference);

}  // namespace tilewire::interpolate

#endif  // ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_
