// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/packed_product.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/threading/stop.h"

namespace tilewire {

PackedProduct::PackedProduct(const VectorUnit& unit, const Shape& shape)
    : shape_(shape),
      size_(ProductTile::SizeFor(unit, shape.post_ops,
                                 *std::max_element(shape.rows.begin(), shape.rows.end()))),
      group_(size_.blocks * unit.lanes()),
      has_tail_(shape.outputs % unit.lanes() != 0) {}

absl::StatusOr<std::unique_ptr<const PackedProduct>> PackedProduct::Create(absl::string_view name,
                                                                           const VectorUnit& unit,
                                                                           const Shape& shape) {
  std::unique_ptr<PackedProduct> product(new PackedProduct(unit, shape));
  ABSL_RETURN_IF_ERROR(product->Compile(name, unit));
  return product;
}

absl::Status PackedProduct::Compile(absl::string_view name, const VectorUnit& unit) {
  const auto runs = [this](int tile_rows) {
    return std::any_of(shape_.rows.begin(), shape_.rows.end(), [&](int64_t rows) {
      return rows % size_.rows == tile_rows || (tile_rows == size_.rows && rows >= size_.rows);
    });
  };
  for (int rows = 1; rows <= size_.rows; ++rows) {
    for (bool last : {false, true}) {
      if (!runs(rows) || (!last && shape_.outputs <= group_)) continue;
      ABSL_ASSIGN_OR_RETURN(auto tile, jit::Compile<ProductTile>(name, ConfigOf(unit, last, rows)));
      code_bytes_ += static_cast<int64_t>(tile->code_bytes());
      tiles_[last][rows] = std::move(tile);
    }
  }
  return absl::OkStatus();
}

ProductTileConfig PackedProduct::ConfigOf(const VectorUnit& unit, bool last, int rows) const {
  const int lanes = unit.lanes();
  const int64_t outputs = last ? (shape_.outputs - 1) % group_ + 1 : group_;
  const bool apart = last && has_tail_;
  ProductTileConfig config{.epilogue = {.unit = unit}};
  config.k = shape_.k;
  config.pairs = shape_.pairs;
  config.src_row_bytes = shape_.src_row_stride * sizeof(float);
  config.epilogue.blocks = static_cast<int>(DivUp(outputs, lanes));
  config.epilogue.pixels = rows;
  config.epilogue.dst_block_bytes = lanes * sizeof(float);
  config.epilogue.dst_pixel_bytes = (apart ? group_ : shape_.dst_row_stride) * sizeof(float);
  config.epilogue.bias = shape_.bias;
  config.epilogue.tail_lanes = static_cast<int>(outputs % lanes);
  config.epilogue.post_ops = shape_.post_ops;
  return config;
}

void PackedProduct::RunGroup(int64_t group, int64_t rows, const Operands& operands) const {
  const bool last = (group + 1) * group_ >= shape_.outputs;
  for (int64_t row = 0; row < rows; row += size_.rows) {
    RunTile(group * group_, row, std::min<int64_t>(size_.rows, rows - row), last, operands);
    if (threading::Stopped()) return;
  }
}

// The last outputs, if they do not fill a vector, go through a tile on the stack.
void PackedProduct::RunTile(int64_t output, int64_t row, int64_t rows, bool last,
                            const Operands& operands) const {
  constexpr int kMostLanes = 16;
  float tile[ProductTile::kMaxVectors * kMostLanes];
  const int64_t count = std::min(group_, shape_.outputs - output), stride = shape_.dst_row_stride;
  const bool apart = last && has_tail_;
  float* dst = operands.dst + row * stride + output;
  ProductTileArgs args;
  args.src = operands.src + row * shape_.src_row_stride;
  args.weights = operands.weights + output * shape_.k;
  args.bias = shape_.bias ? operands.bias + output : nullptr;
  args.dst = apart ? tile : dst;
  if (apart && shape_.post_ops.HasSum()) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(tile + r * group_, dst + r * stride, count * sizeof(float));
      std::fill_n(tile + r * group_ + count, group_ - count, 0.0f);
    }
  }
  tiles_[last][rows]->entry<ProductTile::Function>()(&args);
  if (!apart) return;
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(dst + r * stride, tile + r * group_, count * sizeof(float));
}

}  // namespace tilewire
