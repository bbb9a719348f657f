// SPDX-License-Identifier: Apache-2.0
//
// Selection of elements by one list of indices per dimension:
//
//   dst[i0, i1, ...] = src[from[0][i0], from[1][i1], ...], or `fill` where one of these indices
//                      names no element of the source
//
// Slices, splits, pads, repeats, and gathers whose indices are known at creation.
//
// Shapes    src and dst of the same rank (1 to 12); from[d] lists as many indices as dst has along
//           d, run after run. An empty list is the whole dimension.
// Types     all; src and dst have the same. `fill` is a value of that type.
// Layouts   any; dst may be `any`: the layout of src. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, Slice, Split, Pad, Expand, Tile, Gather.
#ifndef ENGINE_PRIMITIVES_SELECT_SELECT_H_
#define ENGINE_PRIMITIVES_SELECT_SELECT_H_

#include <vector>

#include "engine/memory/index_run.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct SelectDesc {
  MemoryDesc src, dst;
  std::vector<std::vector<IndexRun>> from;  // one list per dimension
  float fill = 0;
};
TILEWIRE_FIELDS(SelectDesc, src, dst, from, fill);

//   kInvalidArgument  ranks, types or counts that differ, an index beyond the source, a fill that
//                     the type does not hold
TILEWIRE_PRIMITIVE_FUNCTIONS(Select);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SELECT_SELECT_H_
