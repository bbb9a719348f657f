// SPDX-License-Identifier: Apache-2.0
//
// Descriptors on which TypesOf() (primitives.h) tries implementations, so that the matrix of
// implementation by type shows what they really take. Each primitive's are in its table.cc.
#ifndef ENGINE_PRIMITIVES_PROBES_H_
#define ENGINE_PRIMITIVES_PROBES_H_

#include <vector>

#include "engine/primitives/primitives.h"

namespace tilewire {

// Typical descriptors of a primitive that reads `type`: for each layout and variant that an
// implementation may be made for, at least one. Empty where the primitive has no such form.
std::vector<OpDesc> Probes(PrimitiveKind kind, DataType type);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PROBES_H_
