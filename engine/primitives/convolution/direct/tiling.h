// SPDX-License-Identifier: Apache-2.0
//
// How a convolution is cut: into register tiles (pixels of a row x blocks of output channels), and
// into pieces of work that keep their operands in cache. Only the shape and the unit decide, never
// the number of threads or the batch. Pure functions.
#ifndef ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILING_H_
#define ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILING_H_

#include <cstdint>
#include <vector>

#include "engine/base/range.h"
#include "engine/jit/vector_unit.h"
#include "engine/primitives/convolution/geometry.h"

namespace tilewire::convolution {

inline constexpr int64_t kFloatBytes = sizeof(float);

// The vector registers that a tile may use. Beside the sums its loop needs a vector of weights per
// block, one of src, and `extra` more; its epilogue needs `scratch`, once the loop is done.
struct RegisterBudget {
  VectorUnit unit;
  int extra = 0;
  int scratch = 1;
};

struct Tiling {
  std::vector<Range> tiles;      // of a row, in pixels
  std::vector<Range> oc_groups;  // in blocks of output channels
};

// The tiling with the fewest estimated cycles. Per input channel a tile of b blocks x p pixels
// takes the longest of its FMAs (two per cycle), its loads (two per cycle), its instructions (four
// per cycle) and the latency of a chain of FMAs, plus a little for weights from beyond the first
// cache.
Tiling ChooseTiling(int64_t row_pixels, int64_t oc_blocks, const RegisterBudget& budget);

// A piece of work is `units` tiles (counted over all rows of an image) times `oc_groups` groups.
// Inside it the input channels are summed up in chunks of `ic_blocks`, between which the sums wait
// in dst.
struct WorkSize {
  int64_t units = 1, oc_groups = 1, ic_blocks = 1;
  bool streams_weights = false;  // there are more than stay in the second cache
};
WorkSize ChooseWorkSize(const Geometry& geometry, const Tiling& tiling, int lanes, bool may_chunk);

// `work` for windows of one tap, with chunks so short that a chunk's weights of a group stay in the
// first cache from tile to tile, if the tiles of a piece are enough to gain by that.
WorkSize WithChunksOfFirstCache(WorkSize work, const Geometry& geometry, const Tiling& tiling,
                                int lanes);

}  // namespace tilewire::convolution

#endif  // ENGINE_PRIMITIVES_CONVOLUTION_DIRECT_TILING_H_
