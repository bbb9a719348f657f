// SPDX-License-Identifier: Apache-2.0
//
// A product of f32 matrices in the layouts in which they come:
//
//   dst[m,n] = postops(bias[n] + sum over k of src[m,k] * weights[k,n])
//
// How it is computed follows from the layout of weights:
//
//   rows of neighbours   strided_tile.h reads them where they lie. K is cut into parts, whose rows
//                        of weights stay in the second cache while all rows of a piece are
//                        multiplied by them; those of the next part are fetched meanwhile, one row
//                        after the other as memory is fast.
//   columns of           with rows of src alike, and many products: dot_tile.h reads both where
//   neighbours           they lie.
//   any other            panels are copied first, [panel][K] with a tile's columns innermost and
//                        zeros after the last; then as the first.
//
// Where rows are few and weights more than caches hold, parts of K are short and pieces wide, so
// that each of a few rows of weights is read over pages of memory. Chains that are added do not get
// shorter by that: several parts make up one.
//
// Where K is so short that dst is what memory has to move, and dst exceeds the caches, a piece has
// more columns and takes them row by row; rows go past the caches if they consist of whole lines,
// because reading what is about to be overwritten would take as long as writing it.
//
// A panel is the columns of a tile over all of K; a piece of work some panels times some rows. The
// order of the sums of an element follows from K, the layouts and `adds_parts` alone.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_KERNELS_PRODUCTS_STRIDED_PRODUCT_H_
#define ENGINE_KERNELS_PRODUCTS_STRIDED_PRODUCT_H_

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/base/checked_math.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/attributes.h"
#include "engine/kernels/products/strided_tile.h"

namespace tilewire {

class StridedProduct {
 public:
  // Strides are in elements, at most kLongestStride where the dimension has more than one; elements
  // of a row of dst follow each other.
  struct Shape {
    int64_t m = 0, n = 0, k = 0;
    int64_t src_row = 0, src_k = 0, weights_k = 0, weights_n = 0, dst_row = 0;
    bool bias = false;
    // A chain of additions for each part of K, of which there are as many whatever m is: rounds
    // less.
    bool adds_parts = false;
    bool read_late = false;  // dst, not by the next step: a smaller one goes past the caches
    PostOps post_ops;
  };
  // Addresses for the first row and column. `copies` are those of `weights`, where there are any.
  struct Operands {
    const float *src, *weights, *copies, *bias;
    float* dst;
  };

  // Displacements of a few rows and steps are 32-bit immediates.
  static constexpr int64_t kLongestStride = (int64_t{1} << 25) - 1;

  // Errors are those of jit::Compile().
  static absl::StatusOr<std::unique_ptr<const StridedProduct>> Create(absl::string_view name,
                                                                      const VectorUnit& unit,
                                                                      const Shape& shape);

  // Whether panels of weights would have to be copied.
  static bool CopiesPanels(const Shape& shape) { return FormOf(shape) == Form::kCopies; }

  // Weights are copied by panels, each on its own: their number, 0 where nothing is copied, and the
  // elements of a copy.
  int64_t copied_panels() const { return CopiesPanels(shape_) ? panels_ : 0; }
  int64_t panel_elements() const { return shape_.k * columns_; }
  // Returns early when the run is stopped (threading::Stopped()).
  void CopyPanel(const float* weights, int64_t panel, float* to) const;

  // The pieces are independent of each other; of each, the most products, and the memory that it
  // needs for sums between parts of K.
  int64_t pieces() const { return pieces_of_panels_ * pieces_of_rows_; }
  int64_t products_of_piece() const;
  int64_t sums_elements() const;
  // Returns early when the run is stopped.
  void RunPiece(int64_t piece, const Operands& operands, float* sums) const;

  int64_t code_bytes() const { return code_bytes_; }

 private:
  enum class Form { kRows, kDots, kCopies };
  static constexpr int kMaxRows = 8;

  StridedProduct(const VectorUnit& unit, const Shape& shape);
  static Form FormOf(const Shape& shape);
  void ChoosePieces(int most_blocks);
  void ChooseParts();
  bool ReadsMuch() const;
  absl::Status Compile(absl::string_view name);
  absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileTile(absl::string_view name,
                                                                    bool tail, int64_t rows,
                                                                    bool streams) const;
  bool HasOpenChains() const { return shape_.adds_parts && part_ < shape_.k && part_ < chain_; }
  int64_t totals_elements() const;
  void SetSums(int64_t begin, float* sums, StridedTileArgs* tile) const;
  void RunPart(int64_t begin, int64_t piece, const Operands& operands, float* sums) const;
  struct Window;
  void Fetch(Window* window, int64_t lines) const;
  bool WritesMuch() const;
  void RunRows(int64_t piece, const Operands& operands, float* sums) const;
  void CopyRows(const float* sums, int64_t rows, int64_t columns, float* dst) const;

  const VectorUnit unit_;
  const Shape shape_;
  const Form form_;
  int64_t columns_ = 0, panels_ = 0;  // of a panel; in all
  int64_t tail_ = 0;                  // columns of the last panel where it is not whole, else 0
  int64_t max_rows_ = 0;              // of a tile
  int64_t part_ = 0;                  // of K
  int64_t chain_ = 1;                 // products of a chain where `adds_parts`: some parts of K
  int64_t panels_of_piece_ = 0, pieces_of_panels_ = 0, pieces_of_rows_ = 0;
  // Rows go past the caches: from tiles whose vectors are lines, or by way of memory of the piece,
  // to which tiles write.
  bool streams_ = false, copies_rows_ = false;
  int64_t code_bytes_ = 0;
  // By whether the panel has a tail, and by rows; null where there is none.
  using Tiles = std::array<std::array<std::unique_ptr<const jit::Generator>, kMaxRows + 1>, 2>;
  Tiles tiles_, streaming_tiles_;
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PRODUCTS_STRIDED_PRODUCT_H_
