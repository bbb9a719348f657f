// SPDX-License-Identifier: Apache-2.0
//
// The order of a matrix tile's code (matrix_tile.h, plane_tile.h), and the addresses that it uses.
// Pure functions.
//
// The sums of a tile are complete after its last step; what turns them into dst (scales, bias,
// post-ops, rounding) is its end. The end is cut into parts, which run between the products of the
// tile that comes next: the vector units work while the matrix unit multiplies. A step has as many
// parts as it has products in a whole tile, so that each is followed by a product, 16 cycles.
#ifndef ENGINE_KERNELS_TILES_MATRIX_PLAN_H_
#define ENGINE_KERNELS_TILES_MATRIX_PLAN_H_

#include <cstdint>
#include <vector>

#include "engine/kernels/tiles/tap_loops.h"

namespace tilewire {

// Neighbouring pixels of a tile, and how far from its dst they begin.
struct PixelRun {
  int first = 0, count = 0;
  int64_t dst_bytes = 0;
  bool operator==(const PixelRun&) const = default;
};

// One of a step: the sums of an output block and a half of the pixels. Whether its operands have to
// be loaded, or are those of the product before it.
struct MatrixProduct {
  int block, half;
  bool loads_weights, loads_src;
  int parts;  // of the end of the tile before this one, that follow the product
  int src_plane = 0, weights_plane = 0;
  bool operator==(const MatrixProduct&) const = default;
};

// In order: back and forth over the halves, so that each plane and block begins with the half that
// the one before it ended with, and over the pairs of planes likewise. The order of the products of
// an element depends on whether its block is the first or the second, and on nothing else. Integers
// have one plane; see plane_tile.h for which of several are multiplied.
std::vector<MatrixProduct> MatrixProductsOf(int blocks, int halves, int planes = 1);

// Where the steps of a reduction begin in src, in the order of their weights: input blocks, then
// depth, height and width taps. Bytes from a tile's first pixel.
std::vector<int64_t> MatrixStepsOf(const TapLoops& loops, int64_t input_blocks);

// How many parts of an end a step has; and how many steps of a tile's `steps`, from the first on,
// have parts among their products.
int MatrixPartsOfStep(int planes = 1);
int MatrixStepsWithEnd(int64_t steps, int planes = 1);

// The pixels of each of `parts` parts of an end, as evenly as possible; some may have none. A part
// has as many runs as its pixels lie apart in.
std::vector<std::vector<PixelRun>> MatrixEndOf(const std::vector<PixelRun>& runs,
                                               int64_t dst_pixel_bytes, int parts);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_TILES_MATRIX_PLAN_H_
