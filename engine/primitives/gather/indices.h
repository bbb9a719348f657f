// SPDX-License-Identifier: Apache-2.0
//
// How every row of gather reads an index. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_GATHER_INDICES_H_
#define ENGINE_PRIMITIVES_GATHER_INDICES_H_

#include <cstdint>

#include "engine/primitives/gather/gather.h"

namespace tilewire::gather {

constexpr int64_t kOutside = -1;

// The element that the index names among `size`; kOutside if there is none.
int64_t PlaceOfIndex(float index, int64_t size);

// kInvalidArgument  an index is outside; the message names the first
absl::Status CheckIndices(const GatherDesc& desc, const float* indices);

PrimitiveInfo InfoOf(const GatherDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts);

}  // namespace tilewire::gather

#endif  // ENGINE_PRIMITIVES_GATHER_INDICES_H_
