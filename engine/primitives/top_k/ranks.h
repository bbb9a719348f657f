// SPDX-License-Identifier: Apache-2.0
//
// Which of two elements ranks higher, and the types of elements, for all rows.
#ifndef ENGINE_PRIMITIVES_TOP_K_RANKS_H_
#define ENGINE_PRIMITIVES_TOP_K_RANKS_H_

#include "engine/memory/element_types.h"
#include "engine/primitives/top_k/top_k.h"

namespace tilewire::top_k {

// A strict order, with NaN above every number.
template <typename T>
bool IsAbove(T x, T y) {
  if (x != x || y != y) return x != x && y == y;
  return x > y;
}

// Calls visit(T()) for the type of the elements that are ranked.
template <typename Visit>
auto VisitElementType(const TopKDesc& desc, Visit visit) {
  if (desc.src.data_type() == DataType::kF32) return visit(float());
  return VisitIntegerOrDouble(desc.src.data_type(), visit);
}

// Writes an element of dst: the element of src that ranks here, or its index.
template <typename T>
void StoreBest(const TopKDesc& desc, T element, int64_t index, void* dst, int64_t offset) {
  if (desc.indices) {
    static_cast<float*>(dst)[offset] = static_cast<float>(index);
  } else {
    static_cast<T*>(dst)[offset] = element;
  }
}

}  // namespace tilewire::top_k

#endif  // ENGINE_PRIMITIVES_TOP_K_RANKS_H_
