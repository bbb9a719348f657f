// SPDX-License-Identifier: Apache-2.0
#include "engine/kernels/products/packed_product.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/threading/stop.h"

namespace tilewire {
namespace {

// A group of fewer tiles would skip lines of the next group's weights.
constexpr int kFewestTilesAhead = 12;

}  // namespace

PackedProduct::PackedProduct(const VectorUnit& unit, const Shape& shape)
    : shape_(shape),
      size_(ProductTile::SizeFor(unit, shape.post_ops,
                                 *std::max_element(shape.rows.begin(), shape.rows.end()))),
      group_(size_.blocks * unit.lanes()),
      has_tail_(shape.outputs % unit.lanes() != 0),
      fetches_ahead_(*std::max_element(shape.rows.begin(), shape.rows.end()) >=
                     kFewestTilesAhead * size_.rows) {}

absl::StatusOr<std::unique_ptr<const PackedProduct>> PackedProduct::Create(absl::string_view name,
                                                                           const VectorUnit& unit,
                                                                           const Shape& shape) {
  TILEWIRE_CHECK(!shape.rows.empty(), "a product is asked for some number of rows");
  if (shape.k > kLongestRow || shape.src_row_stride > kLongestRow ||
      shape.dst_row_stride > kLongestStride) {
    return Unimplemented("strides over 31 bits");
  }
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
  config.fetches_ahead = fetches_ahead_;
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
  Ahead ahead = AheadOf(group, rows, operands);
  for (int64_t row = 0; row < rows; row += size_.rows) {
    RunTile(group * group_, row, std::min<int64_t>(size_.rows, rows - row), ahead, operands);
    ahead.weights += ahead.step_bytes * (shape_.k / ProductTile::kChains);
    if (threading::Stopped()) return;
  }
}

// The tiles of a group share the weights of the next one evenly. The last group fetches none: it
// asks for a line of its own.
PackedProduct::Ahead PackedProduct::AheadOf(int64_t group, int64_t rows,
                                            const Operands& operands) const {
  const int64_t next = (group + 1) * group_;
  const int64_t steps = DivUp(rows, int64_t{size_.rows}) * (shape_.k / ProductTile::kChains);
  const bool fetches = fetches_ahead_ && rows >= kFewestTilesAhead * size_.rows &&
                       next < shape_.outputs && steps > 0;
  const float* weights = operands.weights + (fetches ? next : group * group_) * shape_.k;
  const int64_t bytes = std::min(group_, shape_.outputs - next) * shape_.k * int64_t{sizeof(float)};
  return {reinterpret_cast<const std::byte*>(weights), fetches ? DivUp(bytes, steps) : 0};
}

// The last outputs, if they do not fill a vector, go through a tile on the stack.
void PackedProduct::RunTile(int64_t output, int64_t row, int64_t rows, const Ahead& ahead,
                            const Operands& operands) const {
  constexpr int kMostLanes = 16;
  float tile[ProductTile::kMaxVectors * kMostLanes];
  const int64_t count = std::min(group_, shape_.outputs - output), stride = shape_.dst_row_stride;
  const bool last = output + group_ >= shape_.outputs, apart = last && has_tail_;
  float* dst = operands.dst + row * stride + output;
  ProductTileArgs args;
  args.src = operands.src + row * shape_.src_row_stride;
  args.weights = operands.weights + output * shape_.k;
  args.bias = shape_.bias ? operands.bias + output : nullptr;
  args.dst = apart ? tile : dst;
  args.ahead = ahead.weights;
  args.ahead_bytes = ahead.step_bytes;
  if (apart && shape_.post_ops.HasSum()) {
    for (int64_t r = 0; r < rows; ++r) {
      std::memcpy(tile + r * group_, dst + r * stride, count * sizeof(float));
      std::fill_n(tile + r * group_ + count, group_ - count, 0.0f);
    }
  }
  const ProductTile* const code = tiles_[last][rows].get();
  TILEWIRE_CHECK(code != nullptr, "the number of rows is one of Shape::rows");
  code->entry<ProductTile::Function>()(&args);
  if (!apart) return;
  for (int64_t r = 0; r < rows; ++r)
    std::memcpy(dst + r * stride, tile + r * group_, count * sizeof(float));
}

}  // namespace tilewire
