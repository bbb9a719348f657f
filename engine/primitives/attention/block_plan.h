// SPDX-License-Identifier: Apache-2.0
//
// How attention is cut into blocks that stay in cache. It depends on the descriptor and the vector
// unit only.
//
// A piece is some neighbouring queries of all heads that share keys and values. It copies those
// keys, turned, and the values into panels: the columns of a tile, [row][column], zeros after the
// last. Then it takes a block of queries after the other: masks and products with the keys give a
// block of scores, softmax makes shares of them in place, and their products with the values are
// rows of dst. Memory for all this is a slot of the scratchpad. Where tiles can read values and
// masks as they lie in memory, these are not copied.
#ifndef ENGINE_PRIMITIVES_ATTENTION_BLOCK_PLAN_H_
#define ENGINE_PRIMITIVES_ATTENTION_BLOCK_PLAN_H_

#include <cstdint>
#include <vector>

#include "engine/jit/vector_unit.h"
#include "engine/primitives/attention/attention.h"

namespace tilewire::attention {

struct Panel {
  int64_t column;  // its first
  int blocks;      // vectors of columns
};

struct BlockPlan {
  BlockPlan(const AttentionDesc& desc, const jit::VectorUnit& unit);

  int64_t batches, heads, groups, queries, keys, depth, columns;  // depth: D, columns: E
  int64_t lanes;                                                  // of a vector
  std::vector<Panel> score_panels, value_panels;
  int64_t score_stride, value_stride;  // keys and columns, rounded up to vectors
  int64_t tile_rows;                   // of a whole tile
  int64_t block_rows, piece_rows;      // of queries; multiples of the one before
  int64_t chunks;                      // pieces of one head
  bool values_in_place;                // they need no copy: few of them, in whole vectors
  bool masks_in_place;                 // the products are added to them where they are

  int64_t heads_per_group() const { return heads / groups; }
  int64_t pieces() const { return batches * groups * chunks; }
  // Floats of a slot: keys, values, scores.
  int64_t key_elements() const { return depth * score_stride; }
  int64_t value_elements() const { return values_in_place ? 0 : keys * value_stride; }
  int64_t slot_elements() const {
    return key_elements() + value_elements() + block_rows * score_stride;
  }
};

}  // namespace tilewire::attention

#endif  // ENGINE_PRIMITIVES_ATTENTION_BLOCK_PLAN_H_
