// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/plan/plan_draft.h"

namespace tilewire::lowering {

int64_t BytesBefore(const PartBegin& begin, const MemoryDesc& layout, const Dims& strides) {
  int64_t block = 1;
  for (const InnerBlock& inner : layout.inner_blocks())
    if (inner.dim == begin.axis) block *= inner.size;
  return begin.index / block * strides[begin.axis] * SizeOf(layout.data_type());
}

}  // namespace tilewire::lowering
