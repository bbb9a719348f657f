// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/direct/work_grid.h"

#include <algorithm>
#include <utility>

#include "engine/base/checked_math.h"

namespace tilewire::convolution {

WorkGrid::WorkGrid(const Geometry& geometry, Tiling tiling, const WorkSize& work,
                   const Spatial& src_strides, const Spatial& dst_strides, int64_t tap_weights)
    : tiling_(std::move(tiling)), work_(work), groups_(geometry.groups), width_(geometry.out[2]) {
  const auto src_offset = [&](int d, int64_t o, int64_t first_tap) {
    return (o * geometry.stride[d] + first_tap * geometry.tap_step[d] - geometry.pad[d]) *
           src_strides[d];
  };
  for (int64_t od = 0; od < geometry.out[0]; ++od) {
    for (int64_t oh = 0; oh < geometry.out[1]; ++oh) {
      const TapRange depth = ValidTaps(geometry, 0, od), height = ValidTaps(geometry, 1, oh);
      const bool any = depth.end > depth.begin && height.end > height.begin;
      const int64_t first_tap =
          (depth.begin * geometry.kernel[1] + height.begin) * geometry.kernel[2];
      rows_.push_back({.src = src_offset(0, od, depth.begin) + src_offset(1, oh, height.begin),
                       .weights = first_tap * tap_weights,
                       .dst = od * dst_strides[0] + oh * dst_strides[1],
                       .depth_taps = any ? depth.end - depth.begin : 0,
                       .height_taps = any ? height.end - height.begin : 0});
    }
  }
  for (const Range& tile : tiling_.tiles)
    tiles_.push_back({.src = src_offset(2, tile.begin, 0),
                      .dst = tile.begin * dst_strides[2],
                      .first = tile.begin});
  unit_pieces_ = DivUp(rows_.size() * tiles_.size(), work_.units);
  oc_pieces_ = DivUp(tiling_.oc_groups.size(), work_.oc_groups);
}

int64_t WorkGrid::PiecesAtOnce(int threads) const {
  constexpr int64_t kFewestUnits = 16;
  if (threads > 1) return 1;
  return std::max<int64_t>(1, std::min(unit_pieces_, DivUp(kFewestUnits, work_.units)));
}

int64_t WorkGrid::PiecesPerImage(int64_t at_once) const {
  return groups_ * oc_pieces_ * DivUp(unit_pieces_, at_once);
}

WorkGrid::Piece WorkGrid::PieceAt(int64_t index, int64_t at_once) const {
  const int64_t all_units = rows_.size() * tiles_.size(), all_groups = tiling_.oc_groups.size();
  const int64_t units = work_.units * at_once, unit_pieces = DivUp(unit_pieces_, at_once);
  Piece piece;
  piece.units.begin = index % unit_pieces * units;
  piece.units.size = std::min(units, all_units - piece.units.begin);
  FindFirstUnit(&piece);
  index /= unit_pieces;
  piece.oc_groups.begin = index % oc_pieces_ * work_.oc_groups;
  piece.oc_groups.size = std::min(work_.oc_groups, all_groups - piece.oc_groups.begin);
  index /= oc_pieces_;
  piece.image = index / groups_;
  piece.group = index % groups_;
  return piece;
}

WorkGrid::Piece WorkGrid::PartOf(const Piece& piece, int64_t first, int64_t units) const {
  Piece part = piece;
  part.units = {piece.units.begin + first, std::min(units, piece.units.size - first)};
  FindFirstUnit(&part);
  return part;
}

void WorkGrid::FindFirstUnit(Piece* piece) const {
  const auto tiles = static_cast<int64_t>(tiles_.size());
  piece->row = piece->units.begin / tiles;
  piece->tile = piece->units.begin % tiles;
}

WeightsPrefetch WorkGrid::WeightsAfter(const Piece& piece, int64_t oc_group, int64_t ic_block,
                                       const WeightsOrder& order) const {
  int64_t group = piece.group;
  ic_block += order.chunk;
  if (ic_block >= order.ic_blocks) {
    ic_block = 0;
    ++oc_group;
  }
  if (oc_group == static_cast<int64_t>(tiling_.oc_groups.size())) {
    oc_group = 0;
    group = (group + 1) % groups_;
    if (group == 0 && piece.image + 1 == order.images) return {};
  }
  const Range& blocks = tiling_.oc_groups[oc_group];
  const std::byte* weights =
      order.begin + group * order.group + blocks.begin * order.oc_block + ic_block * order.ic_block;
  const int64_t stretch = std::min(order.chunk, order.ic_blocks - ic_block) * order.ic_block;
  if (stretch < order.oc_block)
    return WeightsPrefetch(weights, stretch, order.oc_block, blocks.size, /*skipped=*/0);
  // All are one stretch, of which each piece prefetches its share.
  const int64_t all = blocks.size * order.oc_block;
  return WeightsPrefetch(weights, all, all, 1, all * piece.units.begin / units_per_image());
}

}  // namespace tilewire::convolution
