// SPDX-License-Identifier: Apache-2.0
//
// The padded tail: elements whose index lies in [dims, padded_dims) on some dimension. It is zero
// before and after every primitive (tests/engine/rows.txt T08, Z01). Pure function; thread-safe on
// distinct buffers.
#ifndef ENGINE_MEMORY_ZERO_PADDING_H_
#define ENGINE_MEMORY_ZERO_PADDING_H_

#include "engine/memory/memory_desc.h"

namespace tilewire {

// Writes zeros to the padded tail of the tensor at `data` (the start of a buffer of
// desc.SizeBytes()).
void ZeroPadding(const MemoryDesc& desc, void* data);

}  // namespace tilewire

#endif  // ENGINE_MEMORY_ZERO_PADDING_H_
