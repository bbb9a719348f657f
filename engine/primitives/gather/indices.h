// SPDX-License-Identifier: Apache-2.0
//
// How every row of gather reads an index. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_GATHER_INDICES_H_
#define ENGINE_PRIMITIVES_GATHER_INDICES_H_

#include <cstdint>

#include "engine/primitives/gather/gather.h"
#include "engine/threading/arena.h"

namespace tilewire::gather {

constexpr int64_t kOutside = -1;

// The element that number `i` of `indices`, which are of `type`, names among `size`; kOutside if
// there is none.
int64_t PlaceOfIndex(DataType type, const void* indices, int64_t i, int64_t size);

// kUnimplemented  the indices are not f32, s32 or s64
absl::Status RequireIndexType(const MemoryDesc& indices);

// kInvalidArgument  an index is outside; the message names the first in row-major order
// May look at some only, and return OK, once the run is stopped.
absl::Status CheckIndices(const GatherDesc& desc, const void* indices, const threading::Team& team);

PrimitiveInfo InfoOf(const Request<GatherDesc>& request);

}  // namespace tilewire::gather

#endif  // ENGINE_PRIMITIVES_GATHER_INDICES_H_
