// SPDX-License-Identifier: Apache-2.0
//
// The blocks of a blocked layout (memory_desc.h).
#ifndef ENGINE_MEMORY_INNER_BLOCK_H_
#define ENGINE_MEMORY_INNER_BLOCK_H_

#include <cstdint>

#include "absl/container/inlined_vector.h"

namespace tilewire {

struct InnerBlock {
  int dim = 0;       // logical dimension that is cut
  int64_t size = 1;  // elements of this block
  bool operator==(const InnerBlock&) const = default;
};
using InnerBlocks = absl::InlinedVector<InnerBlock, 4>;

}  // namespace tilewire

#endif  // ENGINE_MEMORY_INNER_BLOCK_H_
