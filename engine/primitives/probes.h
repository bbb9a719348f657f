// SPDX-License-Identifier: Apache-2.0
//
// Descriptors that implementations are asked about, so that the matrix of implementation by type
// says what they answered and nothing else: TypesOf() in primitives.h.
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
