// SPDX-License-Identifier: Apache-2.0
//
// The rows of a product by planes of bf16 (plane_product.h) that are multiplied by vectors of f32
// instead, since they hold numbers that planes do not.
//
// Immutable once created; thread-safe.
#ifndef ENGINE_KERNELS_PLANES_F32_ROWS_H_
#define ENGINE_KERNELS_PLANES_F32_ROWS_H_

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/planes/plane_operands.h"
#include "engine/kernels/planes/plane_weights.h"
#include "engine/kernels/products/strided_tile.h"
#include "engine/memory/plane_layout.h"

namespace tilewire {

class F32Rows {
 public:
  // Some of up to 32 neighbouring rows.
  struct Rows {
    PlaneOperands operands;
    int64_t product, first;
    int count;
    uint32_t selected;  // a bit for each
    PlaneWeights weights;
    std::byte* dst;  // of the product
  };

  //   kResourceExhausted, kUnimplemented  see jit::Compile
  static absl::StatusOr<std::unique_ptr<const F32Rows>> Create(absl::string_view name,
                                                               const PlaneProductShape& shape);

  int64_t bytes() const;  // of the memory that the functions below are given
  int64_t code_bytes() const;

  // As the weights lie, or copied to `memory` where its outputs are not neighbours or not 16, or
  // are split.
  WeightsBlock BlockOf(const std::byte* weights, int64_t block, std::byte* memory) const;

  // Computes two blocks of outputs from 2 * group on, which stay in `memory`. What dst holds is
  // read, if a sum adds it.
  void Multiply(const Rows& rows, int64_t group, std::byte* memory) const;
  // Stores them to dst.
  void Store(const Rows& rows, int64_t group, const std::byte* memory) const;

  std::byte* DstOf(const Rows& rows, int row, int64_t block) const;
  const float* BiasOf(const Rows& rows, int64_t block) const;  // null where there is none

 private:
  // Parts of the memory.
  struct Parts {
    float* rows;     // [kAtOnce][channels of all taps]
    float* block;    // [channels][16]
    float* tile;     // [kAtOnce][16]
    float* results;  // [32][2 blocks][16]
  };

  explicit F32Rows(const PlaneProductShape& shape)
      : shape_(shape), layout_(shape.WeightsLayout(/*matrices=*/1)) {}
  StridedTileConfig ConfigOf(bool last) const;
  Parts PartsOf(std::byte* memory) const;
  int64_t Blocks() const;
  int64_t OutputsOf(int64_t block) const;
  bool IsCopied(int64_t block) const;
  void Gather(const Rows& rows, const std::vector<int>& which, float* to) const;
  void MultiplyBlock(const Rows& rows, const std::vector<int>& which, int64_t block,
                     std::byte* memory) const;

  const PlaneProductShape shape_;
  const PlaneLayout layout_;
  std::unique_ptr<const StridedTile> tiles_[2];  // by whether the block is the last
};

}  // namespace tilewire

#endif  // ENGINE_KERNELS_PLANES_F32_ROWS_H_
