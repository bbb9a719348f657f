// SPDX-License-Identifier: Apache-2.0
//
// The product of rows of f32 and packed weights:
//
//   dst[r,o] = postops(bias[o] + sum over k of src[r,k] * weights[o,k])
//
// The weights are packed with a vector of outputs innermost, [O/16][K][16o] for vectors of 16, with
// zeros after the last output. A group is the outputs of a tile; groups are independent of each
// other, and so are rows: the order of the sums is that of product_tile.h whatever their number.
//
// A group of many rows fetches the weights of the next one meanwhile: otherwise its first tile
// would wait for memory at each line.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_KERNELS_PRODUCTS_PACKED_PRODUCT_H_
#define ENGINE_KERNELS_PRODUCTS_PACKED_PRODUCT_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/checked_math.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/products/product_tile.h"
#include "engine/threading/arena.h"

namespace tilewire {

class PackedProduct {
 public:
  struct Shape {
    int64_t k = 0, outputs = 0;
    bool pairs = false;  // k counts pairs of numbers of bf16 (bf16_rounding.h) in src and weights
    int64_t src_row_stride = 0, dst_row_stride = 0;  // elements; those of a row are neighbours
    bool bias = false;
    PostOps post_ops;
    std::vector<int64_t> rows;  // the numbers of rows that are asked for; at least one
  };
  // Addresses for the first row and output.
  struct Operands {
    const float *src, *weights, *bias;
    float* dst;
  };

  // Every offset inside a tile is a 32-bit immediate: so are k * 64 and a stride of dst * 16.
  static constexpr int64_t kLongestRow = (int64_t{1} << 31) / 64 - 1;
  static constexpr int64_t kLongestStride = (int64_t{1} << 31) / 16 - 1;

  //   kUnimplemented  a row or stride is longer than these
  // and the errors of jit::Compile().
  static absl::StatusOr<std::unique_ptr<const PackedProduct>> Create(absl::string_view name,
                                                                     const VectorUnit& unit,
                                                                     const Shape& shape);

  int64_t groups() const { return DivUp(shape_.outputs, group_); }
  // Returns early when the run is stopped (threading::Stopped()).
  void RunGroup(int64_t group, int64_t rows, const Operands& operands) const;
  void RunAll(int64_t rows, const Operands& operands) const {
    for (int64_t g = 0; g < groups(); ++g) RunGroup(g, rows, operands);
  }
  // The same, a group at a time by the threads of the team.
  void RunAll(int64_t rows, const Operands& operands, const threading::Team& team) const {
    team.ParallelFor(groups(), [&](int64_t g) { RunGroup(g, rows, operands); });
  }

  int64_t code_bytes() const { return code_bytes_; }

 private:
  // The weights that a tile fetches for the next group.
  struct Ahead {
    const std::byte* weights;
    int64_t step_bytes;
  };

  PackedProduct(const VectorUnit& unit, const Shape& shape);
  absl::Status Compile(absl::string_view name, const VectorUnit& unit);
  ProductTileConfig ConfigOf(const VectorUnit& unit, bool last, int rows) const;
  Ahead AheadOf(int64_t group, int64_t rows, const Operands& operands) const;
  void RunTile(int64_t output, int64_t row, int64_t rows, const Ahead& ahead,
               const Operands& operands) const;

  const Shape shape_;
  const ProductTile::Size size_;
  const int64_t group_;  // outputs of a tile
  const bool has_tail_;  // the last outputs do not fill a vector
  const bool fetches_ahead_;
  int64_t code_bytes_ = 0;
  // By whether it is the last group, and rows.
  std::unique_ptr<const ProductTile> tiles_[2][ProductTile::kMaxRows + 1];
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_PACKED_PRODUCT_H_
