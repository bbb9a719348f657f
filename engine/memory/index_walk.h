// SPDX-License-Identifier: Apache-2.0
//
// Visits the indices of a box in row-major order, for the reference loops over tensors.
#ifndef ENGINE_MEMORY_INDEX_WALK_H_
#define ENGINE_MEMORY_INDEX_WALK_H_

#include "engine/memory/dims.h"

namespace tilewire {

// Steps `index` to the next one of the box [0, dims); false (and back at zero) after the last.
inline bool NextIndex(const Dims& dims, Dims* index) {
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    if (++(*index)[d] < dims[d]) return true;
    (*index)[d] = 0;
  }
  return false;
}

// The index at a position of the box, in row-major order.
inline Dims IndexAt(const Dims& dims, int64_t position) {
  Dims index(dims.size(), 0);
  for (int d = static_cast<int>(dims.size()) - 1; d >= 0; --d) {
    index[d] = position % dims[d];
    position /= dims[d];
  }
  return index;
}

// Calls visit(index) for every index of the box; none if a dimension is 0.
template <typename Visit>
void ForEachIndex(const Dims& dims, Visit visit) {
  for (int64_t size : dims) {
    if (size == 0) return;
  }
  Dims index(dims.size(), 0);
  do {
    visit(index);
  } while (NextIndex(dims, &index));
}

// The box of the lines along `axis` of a tensor: one index per line, its first; none where lines
// are empty.
inline Dims LinesAlong(Dims dims, int axis) {
  if (dims[axis] > 1) dims[axis] = 1;
  return dims;
}

// The index to read where a tensor of `dims` is broadcast: 0 along its dimensions of size 1.
inline Dims BroadcastIndex(const Dims& dims, Dims index) {
  for (size_t d = 0; d < dims.size(); ++d) {
    if (dims[d] == 1) index[d] = 0;
  }
  return index;
}

}  // namespace tilewire

#endif  // ENGINE_MEMORY_INDEX_WALK_H_
