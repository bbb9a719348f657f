// SPDX-License-Identifier: Apache-2.0
//
// No scale, same type, or from f32 to bf16: a permutation of elements, plain C++ for any pair of
// layouts.
//
// Each dimension is cut into tiles whose size is a multiple of the blocks of both layouts. Within a
// tile the offset of an element is then a sum over dimensions of a table entry that is the same in
// every tile; between tiles it advances by a constant. A tile covers the blocked dimensions and the
// dimension along which either side is dense, so that the cache lines of both sides are used whole
// while they are near. Tiles are walked in logical order, the elements of a tile in the order of
// the destination.
#include <algorithm>
#include <cstring>
#include <limits>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "engine/memory/narrow_floats.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/reorder/implementations.h"
#include "engine/primitives/single_source.h"
#include "engine/threading/ranges.h"

namespace tilewire::reorder {
namespace {

constexpr int64_t kMaxTile = 1 << 20;     // elements that blocks may ask for
constexpr int64_t kDenseTile = 64;        // along the dense dimension of one side
constexpr int64_t kDenseCopyTile = 4096;  // along the dense dimension of both
constexpr int64_t kSmallTile = 1024;  // tiles grow over whole dimensions up to this many elements
constexpr int64_t kTileElementsAtOnce = 32768;  // in one piece of work

struct Side {
  std::vector<int64_t> offset;  // of each index in a tile, relative to the tile
  int64_t step = 0;             // from tile to tile
  bool dense = true;            // offset[i] == i
};

struct TiledDim {
  int64_t size = 1;
  int64_t tile = 1;
  int64_t tiles = 1;
  Side src, dst;
};

// The dimension whose neighbours are nearest in memory.
int DensestDim(const MemoryDesc& desc) {
  if (!desc.inner_blocks().empty()) return desc.inner_blocks().back().dim;
  int best = 0;
  int64_t best_stride = std::numeric_limits<int64_t>::max();
  for (int d = 0; d < desc.rank(); ++d) {
    if (desc.dim(d) > 1 && desc.stride(d) < best_stride) {
      best = d;
      best_stride = desc.stride(d);
    }
  }
  return best;
}

Side MakeSide(const MemoryDesc& desc, int d, int64_t tile) {
  Side side;
  side.step = tile / desc.BlockSize(d) * desc.stride(d);
  side.offset.resize(tile);
  Dims index(desc.rank(), 0);
  for (int64_t i = 0; i < tile; ++i) {
    index[d] = i;
    side.offset[i] = desc.Offset(index) - desc.offset0();
    side.dense = side.dense && side.offset[i] == i;
  }
  return side;
}

int64_t TileOf(const ReorderDesc& desc, int d) {
  const int64_t blocks = std::lcm(desc.src.BlockSize(d), desc.dst.BlockSize(d));
  if (blocks > 1) return blocks;
  const bool src_dense = d == DensestDim(desc.src), dst_dense = d == DensestDim(desc.dst);
  const int64_t bound = src_dense && dst_dense ? kDenseCopyTile : kDenseTile;
  return src_dense || dst_dense ? std::clamp<int64_t>(desc.src.dim(d), 1, bound) : 1;
}

// Every dimension, outermost first.
std::vector<TiledDim> CutIntoTiles(const ReorderDesc& desc) {
  const int rank = desc.src.rank();
  std::vector<int64_t> tile(rank);
  int64_t elements = 1;
  for (int d = 0; d < rank; ++d) elements *= tile[d] = TileOf(desc, d);
  for (int d = rank - 1; d >= 0; --d) {
    const int64_t size = desc.src.dim(d);
    if (tile[d] != 1 || size <= 1 || size > kSmallTile / elements) continue;
    elements *= tile[d] = size;
  }
  std::vector<TiledDim> dims(rank);
  for (int d = 0; d < rank; ++d) {
    dims[d] = {desc.src.dim(d), tile[d], DivUp(desc.src.dim(d), tile[d]),
               MakeSide(desc.src, d, tile[d]), MakeSide(desc.dst, d, tile[d])};
  }
  return dims;
}

template <typename To, typename From>
To Moved(From element) {
  if constexpr (std::is_same_v<From, float>) {
    return ToBf16(element);
  } else {
    return element;
  }
}

// Immutable. Both are the unsigned integer of the elements' size, or float and the bits of bf16.
template <typename From, typename To = From>
class BlockedCopy final : public SingleSource<From, To> {
 public:
  BlockedCopy(PrimitiveInfo info, const ReorderDesc& desc)
      : SingleSource<From, To>(std::move(info), /*spoils_padding=*/true),
        dims_(CutIntoTiles(desc)) {
    int64_t tile_elements = 1;
    for (size_t d = 0; d < dims_.size(); ++d) {
      tiles_ *= dims_[d].tiles;
      tile_elements *= dims_[d].tile;
      if (dims_[d].tile > 1) order_.push_back(static_cast<int>(d));
    }
    if (order_.empty()) order_.push_back(0);
    std::sort(order_.begin(), order_.end(), [this](int a, int b) { return Gap(a) < Gap(b); });
    tiles_at_once_ = threading::ItemsAtOnce(kTileElementsAtOnce, tile_elements);
  }

 private:
  // The position of the walk over tiles.
  struct Position {
    int64_t tile[kMaxRank];
    int64_t extent[kMaxRank];  // elements of this tile inside the tensor
    const From* src;
    To* dst;
  };

  int64_t Gap(int d) const { return dims_[d].tile > 1 ? dims_[d].dst.offset[1] : 0; }

  void RunOn(const From* src, To* dst, const threading::Team& team) const override {
    threading::ParallelForRanges(team, tiles_, tiles_at_once_, [&](int64_t begin, int64_t end) {
      RunTiles(src, dst, begin, end);
    });
  }

  void RunTiles(const From* src, To* dst, int64_t begin, int64_t end) const {
    Position at{{}, {}, src, dst};
    int64_t rest = begin;
    for (int d = static_cast<int>(dims_.size()) - 1; d >= 0; --d) {
      Move(d, rest % dims_[d].tiles, &at);
      rest /= dims_[d].tiles;
    }
    for (int64_t i = begin; i < end; ++i) {
      CopyLevel(static_cast<int>(order_.size()) - 1, at, at.src, at.dst);
      for (int d = static_cast<int>(dims_.size()) - 1; d >= 0; --d) {
        const bool wraps = at.tile[d] + 1 == dims_[d].tiles;
        Move(d, wraps ? 0 : at.tile[d] + 1, &at);
        if (!wraps) break;
      }
    }
  }

  // To tile `tile` of dimension `d`.
  void Move(int d, int64_t tile, Position* at) const {
    const TiledDim& dim = dims_[d];
    at->src += (tile - at->tile[d]) * dim.src.step;
    at->dst += (tile - at->tile[d]) * dim.dst.step;
    at->tile[d] = tile;
    at->extent[d] = std::min(dim.tile, dim.size - tile * dim.tile);
  }

  void CopyLevel(int level, const Position& at, const From* src, To* dst) const {
    const TiledDim& dim = dims_[order_[level]];
    const int64_t extent = at.extent[order_[level]];
    const int64_t* from = dim.src.offset.data();
    const int64_t* to = dim.dst.offset.data();
    if (level > 0) {
      for (int64_t i = 0; i < extent; ++i) CopyLevel(level - 1, at, src + from[i], dst + to[i]);
    } else if (std::is_same_v<From, To> && dim.src.dense && dim.dst.dense) {
      std::memcpy(dst, src, extent * sizeof(To));
    } else if (dim.dst.dense) {
      for (int64_t i = 0; i < extent; ++i) dst[i] = Moved<To>(src[from[i]]);
    } else {
      for (int64_t i = 0; i < extent; ++i) dst[to[i]] = Moved<To>(src[from[i]]);
    }
  }

  const std::vector<TiledDim> dims_;
  std::vector<int> order_;  // dimensions of more than one element per tile, nearest in dst first
  int64_t tiles_ = 1;
  int64_t tiles_at_once_ = 1;
};

template <typename Element>
using PermutingCopy = BlockedCopy<Element>;

bool RoundsToBf16(const ReorderDesc& desc) {
  return desc.src.data_type() == DataType::kF32 && desc.dst.data_type() == DataType::kBf16;
}

}  // namespace

absl::StatusOr<ReorderDesc> ResolveBlockedCopy(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (RoundsToBf16(desc)) {
    ABSL_RETURN_IF_ERROR(RequireBlocked(desc));
    ABSL_RETURN_IF_ERROR(RequireNoPostOps(request.attributes));
  } else {
    ABSL_RETURN_IF_ERROR(RequirePlainCopy(desc, request.attributes));
  }
  int64_t elements = 1;
  for (int d = 0; d < desc.src.rank(); ++d) {
    elements *= std::lcm(desc.src.BlockSize(d), desc.dst.BlockSize(d));
    if (elements > kMaxTile) return Unimplemented("blocks too large");
  }
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockedCopy(const Request<ReorderDesc>& request) {
  const ReorderDesc& desc = request.desc;
  if (RoundsToBf16(desc)) {
    return std::make_unique<BlockedCopy<float, uint16_t>>(InfoOf(request), desc);
  }
  return MakeCopying<PermutingCopy>(desc.dst.data_type(), InfoOf(request), desc);
}

}  // namespace tilewire::reorder
