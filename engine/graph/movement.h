// SPDX-License-Identifier: Apache-2.0
//
// Operations of a network (network.h) that move elements and compute nothing.
#ifndef ENGINE_GRAPH_MOVEMENT_H_
#define ENGINE_GRAPH_MOVEMENT_H_

#include <cstdint>
#include <vector>

#include "engine/memory/index_run.h"

namespace tilewire::graph {

struct Concat {
  int axis = 1;
};
struct Shuffle {
  int axis = 1;
  int64_t group_size = 1;  // MKL-DNN's: see engine/primitives/shuffle/shuffle.h
};
struct Reshape {};  // the same elements in logical row-major order under dst's dims
struct Transpose {
  std::vector<int> order;  // dst dimension i is src dimension order[i]
};
// dst[i0, i1, ...] = src[from[0][i0], from[1][i1], ...], where from[d] lists the indices run after
// run (an empty list is the whole dimension) and an index that is not in the source gives `fill`.
// Slices, splits, pads, repeats, gathers.
struct Select {
  std::vector<std::vector<IndexRun>> from;  // one list per dimension
  float fill = 0;
};
// dst channel c (dimension 1) is channel from[c].channel of srcs[from[c].src]; all other dimensions
// are equal.
struct GatherChannels {
  struct From {
    int src = 0;
    int64_t channel = 0;
    bool operator==(const From&) const = default;
  };
  std::vector<From> from;  // one per channel of dst
};
// dst[i..., j..., k...] = src0[i..., at(src1[j...]), k...], where at() counts along `axis`. src1
// holds whole numbers, and negative ones count from the end. An index out of range fails the run.
struct Gather {
  int axis = 0;
};

}  // namespace tilewire::graph

#endif  // ENGINE_GRAPH_MOVEMENT_H_
