// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/attention/block_plan.h"

#include <algorithm>

#include "engine/base/checked_math.h"
#include "engine/kernels/products/strided_tile.h"

namespace tilewire::attention {
namespace {

constexpr int64_t kScoreBytes = 64 << 10;  // of a block of scores, about
constexpr int64_t kMostTiles = 16;         // of a block's rows
constexpr int64_t kFewKeys = 64;           // their values stay in the first cache at any stride
constexpr int64_t kPieceRows = 256;        // copying the keys and values for these costs little

// Panels of up to `most` vectors that differ by one at most.
std::vector<Panel> PanelsOf(int64_t columns, int lanes, int most) {
  const int64_t vectors = DivUp(columns, lanes), count = DivUp(vectors, most);
  std::vector<Panel> panels;
  for (int64_t i = 0, column = 0; i < count; ++i) {
    const int64_t blocks = vectors / count + (i < vectors % count ? 1 : 0);
    panels.push_back({column, static_cast<int>(blocks)});
    column += blocks * lanes;
  }
  return panels;
}

// Whether rows are read as they are: their elements follow each other.
bool HasWholeRows(const MemoryDesc& md, int64_t columns) {
  return md.dim(3) == columns && (columns == 1 || md.stride(3) == 1);
}

bool TakesMasksInPlace(const AttentionDesc& desc, int64_t keys) {
  const size_t masks = desc.srcs.size() - AttentionDesc::kFirstMask;
  bool in_place = masks > 0 && masks <= size_t{StridedTileArgs::kMostAddends};
  for (size_t i = 0; i < masks; ++i)
    in_place &= HasWholeRows(desc.srcs[AttentionDesc::kFirstMask + i], keys);
  return in_place;
}

}  // namespace

BlockPlan::BlockPlan(const AttentionDesc& desc, const jit::VectorUnit& unit) {
  const Dims &of_queries = desc.srcs[AttentionDesc::kQueries].dims(),
             &of_keys = desc.srcs[AttentionDesc::kKeys].dims();
  batches = of_queries[0];
  heads = of_queries[1];
  queries = of_queries[2];
  depth = of_queries[3];
  groups = of_keys[1];
  keys = of_keys[2];
  columns = desc.dst.dim(3);
  lanes = unit.lanes();
  const bool many_registers = unit.registers() >= 32;
  const int most_blocks = many_registers ? 4 : 2;
  score_panels = PanelsOf(keys, unit.lanes(), most_blocks);
  value_panels = PanelsOf(columns, unit.lanes(), most_blocks);
  score_stride = RoundUp(keys, unit.lanes());
  value_stride = RoundUp(columns, unit.lanes());
  tile_rows = many_registers ? 6 : 4;
  const int64_t row_bytes = score_stride * int64_t{sizeof(float)};
  const int64_t fitting = kScoreBytes / std::max<int64_t>(1, row_bytes * tile_rows);
  block_rows = std::clamp<int64_t>(fitting, 2, kMostTiles) * tile_rows;
  piece_rows = RoundUp(kPieceRows, block_rows);
  chunks = DivUp(queries, piece_rows);
  values_in_place = keys <= kFewKeys && columns % lanes == 0 &&
                    HasWholeRows(desc.srcs[AttentionDesc::kValues], columns);
  masks_in_place = TakesMasksInPlace(desc, keys);
}

}  // namespace tilewire::attention
