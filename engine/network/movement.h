// SPDX-License-Identifier: Apache-2.0
//
// Operations of a network (network.h) that move elements without computing anything.
#ifndef ENGINE_NETWORK_MOVEMENT_H_
#define ENGINE_NETWORK_MOVEMENT_H_

#include <cstdint>
#include <vector>

#include "engine/memory/data_type.h"
#include "engine/memory/index_run.h"

namespace tilewire::network {

struct Concat {
  int axis = 1;
};
struct Shuffle {
  int axis = 1;
  int64_t group_size = 1;  // MKL-DNN's: see engine/primitives/shuffle/shuffle.h
};
struct Reshape {};  // the same elements in logical row-major order under dst's dims
// The same numbers in dst's type, by way of other types one after the other, as
// engine/primitives/convert/convert.h has them.
struct Convert {
  std::vector<DataType> via;
};
struct Transpose {
  std::vector<int> order;  // dst dimension i is src dimension order[i]
};
// dst[i0, i1, ...] = src[from[0][i0], from[1][i1], ...], where from[d] lists the indices as runs
// (an empty list is the whole dimension) and an index outside the source gives `fill`. Expresses
// slices, splits, pads, repeats, and gathers by known indices.
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
// dst[i..., j..., k...] = src0[i..., src1[j...], k...], where the index is along `axis`. src1 holds
// whole numbers, as s32, s64 or f32; negative ones count from the end, and one outside the source
// fails the run.
struct Gather {
  int axis = 0;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_MOVEMENT_H_
