// SPDX-License-Identifier: Apache-2.0
//
// Products of f32 matrices by planes of bf16 on matrix tiles (plane_tile.h), as many at a time as
// there are images, groups or matrices:
//
//   dst[p,r,o] = postops(bias[o] + sum over tap, channel of src[p,r,tap,channel]
//                                  * weights[w(p),tap,channel,o])
//
// Tensors are f32, but that src and dst may be bf16 where one plane is multiplied. So many outputs
// of weights are multiplied at a time that their planes stay in cache: for each strip of rows all
// of their source is split, and multiplied by all of these outputs. The end of each tile runs
// beside the products of the next (matrix_tiles.h), of whichever rows.
//
// Weights of a model are split when it is loaded (engine/memory/plane_layout.h), and take 2 bytes
// per plane and number; those that are computed are split to the scratchpad while this runs. Both
// give the same bits.
//
// A row of src with a number that planes do not hold (IsBeyondPlanes()), an infinity for example,
// is multiplied by vectors, so that it means what it means in f32; and every row, where such a
// number is among the weights of its outputs. A src of bf16 has no such numbers: the products of
// its infinities are those of tiles.
//
// No bit of a row of dst depends on the other rows, on their number or on the threads.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_KERNELS_PLANES_PLANE_PRODUCT_H_
#define ENGINE_KERNELS_PLANES_PLANE_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/checked_math.h"
#include "engine/base/range.h"
#include "engine/kernels/planes/f32_rows.h"
#include "engine/kernels/planes/plane_lines.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/kernels/planes/plane_split.h"
#include "engine/kernels/planes/plane_tile.h"
#include "engine/kernels/planes/plane_weights.h"
#include "engine/memory/plane_layout.h"
#include "engine/threading/arena.h"

namespace tilewire {

class PlaneProduct {
 public:
  struct Item {
    int64_t product = 0;  // as PlaneRows knows it
    int64_t weights = 0;  // index
    int64_t dst = 0;      // offset in bytes
  };

  // `items` in any order. 64 times each stride is below 2^31.
  //   kResourceExhausted, kUnimplemented  see jit::Compile
  static absl::StatusOr<std::unique_ptr<const PlaneProduct>> Create(
      absl::string_view name, const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
      std::vector<Item> items);

  // `scratchpad` has scratchpad_bytes(), on a 64-byte boundary.
  void Run(const PlaneOperands& operands, std::byte* scratchpad, const threading::Team& team) const;

  int64_t scratchpad_bytes() const;
  int64_t code_bytes() const { return code_bytes_; }

 private:
  // The weights and groups of two blocks of outputs whose planes are in use at a time.
  struct Chunk {
    Range weights, groups;
  };
  // For the first of neighbouring groups: planes, and whether a number of the group is beyond them.
  struct ChunkPlanes {
    const std::byte* lines;
    const uint8_t* beyond;
  };
  // Strips of rows times groups.
  struct Piece {
    PlaneOperands operands;
    Item item;
    Range strips, groups;
    ChunkPlanes planes;
    std::byte* slot;  // of one thread: planes of a strip, and what F32Rows needs
  };
  // Up to 32 rows of a strip, whose lines begin with `line`.
  struct Tile {
    int64_t strip, line, row;  // row: of the product
    const std::byte* src;      // of the first row
    int rows;
    uint32_t beyond;  // rows with a number that is beyond planes, a bit for each
  };

  PlaneProduct(const PlaneProductShape& shape, std::vector<PlaneWeights> weights,
               std::vector<Item> items);
  absl::Status Compile(absl::string_view name);
  EpilogueConfig EpilogueOf(bool last_group, int64_t rows) const;
  std::vector<int32_t> PlacesOf(int64_t strip) const;

  int64_t Groups() const { return layout_.Groups(); }
  int64_t GroupBytes() const { return layout_.GroupBytes(); }
  int64_t SharedBytes() const;
  int64_t SlotBytes() const;
  int64_t ChunkGroups() const;
  int64_t Chunks() const;
  Chunk ChunkAt(int64_t index) const;

  ChunkPlanes PlanesOf(const PlaneOperands& operands, const Chunk& chunk, std::byte* scratchpad,
                       const threading::Team& team) const;
  void RunChunk(const PlaneOperands& operands, const Chunk& chunk, std::byte* scratchpad,
                const threading::Team& team) const;
  bool SplitGroup(const PlaneOperands& operands, int64_t weights, int64_t group, std::byte* copy,
                  std::byte* to) const;
  void MultiplyPiece(const Piece& piece) const;
  void MultiplyTile(const Piece& piece, const Tile& tile, int64_t i, MatrixTiles* tiles) const;
  std::vector<Tile> TilesOf(const Piece& piece, int64_t strip) const;
  const std::byte* SourceOf(const Piece& piece, const Tile& tile) const;
  int KindOf(const Tile& tile) const;

  const PlaneProductShape shape_;
  const PlaneLayout layout_;
  std::vector<PlaneWeights> weights_;
  const std::vector<Item> items_;     // by their weights
  std::vector<int64_t> first_items_;  // of each weights, and the number of all
  int64_t slots_ = 1, code_bytes_ = 0;
  std::unique_ptr<const PlaneLines> lines_;
  std::unique_ptr<const PlaneSplit> split_;  // of weights that are not split
  std::unique_ptr<const F32Rows> f32_rows_;
  // By whether the group is the last, and by whether rows are the rest: of the product, or, where
  // lines are shared, half of a tile or less.
  std::unique_ptr<const jit::Generator> tiles_[2][2];
  // The place of every line of a strip, where they are shared: IntegerTileArgs::places. The last
  // strip's are others.
  std::vector<int32_t> places_[2];
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_PLANE_PRODUCT_H_
