// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_source_plane_generator.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/checked_math.h"
#include "engine/kernels/tiles/row_tiles.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kPixelRegisters = 2;  // in turn, for diff_dst

// Pixels of a tile: whole strides, so that tiles inside a row are alike.
int64_t MostPixels(const VectorUnit& unit, int64_t taps, int64_t stride) {
  constexpr int64_t kMost = 16;
  const int64_t free = std::min(kMost, unit.registers() - taps - kPixelRegisters);
  return free < stride ? 0 : free / stride * stride;
}

}  // namespace

bool DepthwiseSourcePlaneGenerator::Holds(const VectorUnit& unit, int64_t taps, int64_t stride) {
  constexpr int64_t kFewestPixels = 4;  // sums that wait for each other fill no FMA unit
  return MostPixels(unit, taps, stride) >= kFewestPixels;
}

DepthwiseSourcePlaneGenerator::DepthwiseSourcePlaneGenerator(absl::string_view name,
                                                             const DepthwiseSourcePlane& plane)
    : Generator(name),
      plane_(plane),
      tiles_(CutIntoTiles(
          plane.src_pixels, MostPixels(plane.unit, plane.taps, plane.stride), plane.stride,
          [this](int64_t first, int64_t pixels) { return TileAt(first, pixels); })) {
  for (const Tile& tile : tiles_) most_pixels_ = std::max(most_pixels_, tile.pixels);
}

DepthwiseSourcePlaneGenerator::Tile DepthwiseSourcePlaneGenerator::TileAt(int64_t first,
                                                                          int64_t pixels) const {
  Tile tile{.pixels = static_cast<int>(pixels)};
  for (int64_t tap = 0; tap < plane_.taps; ++tap) {
    const int64_t begin = first + plane_.pad - tap * plane_.tap_step;  // where column 0 would be
    if (begin + pixels <= 0) break;
    for (int64_t column = begin > 0 ? DivUp(begin, plane_.stride) : 0;
         column < plane_.dst_pixels && column * plane_.stride < begin + pixels; ++column) {
      tile.products.push_back(
          {column - first / plane_.stride, tap, static_cast<int>(column * plane_.stride - begin)});
    }
  }
  tile.SortByColumns();
  return tile;
}

Xbyak::Xmm DepthwiseSourcePlaneGenerator::Pixel(int64_t column) const {
  return plane_.unit.Vector(most_pixels_ + static_cast<int>(column & (kPixelRegisters - 1)));
}

void DepthwiseSourcePlaneGenerator::Emit() {
  Xbyak::Label next_row;
  Preamble();
  mov(rows_, ptr[args_ + offsetof(DepthwiseSourcePlaneArgs, rows)]);
  mov(count_, ptr[args_ + offsetof(DepthwiseSourcePlaneArgs, count)]);
  mov(src_row_, ptr[args_ + offsetof(DepthwiseSourcePlaneArgs, diff_src)]);
  mov(diff_dst_, ptr[args_ + offsetof(DepthwiseSourcePlaneArgs, diff_dst)]);
  mov(weights_, ptr[args_ + offsetof(DepthwiseSourcePlaneArgs, weights)]);
  L(next_row);
  mov(dst_, ptr[rows_ + offsetof(SourceRow, diff_dst)]);
  mov(taps_, ptr[rows_ + offsetof(SourceRow, weights)]);
  mov(tap_rows_, ptr[rows_ + offsetof(SourceRow, tap_rows)]);
  add(dst_, diff_dst_);
  add(taps_, weights_);
  mov(src_, src_row_);
  for (const Tile& tile : tiles_) EmitTiles(tile);
  add(src_row_, static_cast<int>(plane_.src_row));
  add(rows_, static_cast<int>(sizeof(SourceRow)));
  dec(count_);
  jnz(next_row, T_NEAR);
  Postamble();
}

void DepthwiseSourcePlaneGenerator::EmitTiles(const Tile& tile) {
  Xbyak::Label next;
  if (tile.count > 1) mov(turns_, tile.count);
  L(next);
  EmitTile(tile);
  add(src_, static_cast<int>(tile.pixels * plane_.src_pixel));
  add(dst_, static_cast<int>(tile.pixels / plane_.stride * plane_.dst_pixel));
  if (tile.count == 1) return;
  dec(turns_);
  jnz(next, T_NEAR);
}

void DepthwiseSourcePlaneGenerator::EmitTile(const Tile& tile) {
  Xbyak::Label next_tap_row, store;
  for (int pixel = 0; pixel < tile.pixels; ++pixel) plane_.unit.Zero(this, Sum(pixel));
  mov(at_dst_, dst_);
  mov(at_taps_, taps_);
  mov(left_, tap_rows_);
  test(left_, left_);
  jz(store, T_NEAR);
  L(next_tap_row);
  EmitTapRow(tile);
  add(at_dst_, static_cast<int>(plane_.next_dst_row));
  add(at_taps_, static_cast<int>(plane_.next_tap_row));
  dec(left_);
  jnz(next_tap_row, T_NEAR);
  L(store);
  for (int pixel = 0; pixel < tile.pixels; ++pixel) {
    const auto to = ptr[src_ + static_cast<int>(pixel * plane_.src_pixel)];
    if (plane_.adds) vaddps(Sum(pixel), Sum(pixel), to);
    vmovups(to, Sum(pixel));
  }
}

void DepthwiseSourcePlaneGenerator::EmitTapRow(const Tile& tile) {
  std::vector<bool> is_loaded(plane_.taps);
  for (size_t i = 0; i < tile.products.size(); ++i) {
    const Product& product = tile.products[i];
    if (!is_loaded[product.tap])
      vmovups(Tap(product.tap), ptr[at_taps_ + static_cast<int>(product.tap * plane_.weights_tap)]);
    is_loaded[product.tap] = true;
    if (i == 0 || tile.products[i - 1].column != product.column)
      vmovups(Pixel(product.column),
              ptr[at_dst_ + static_cast<int>(product.column * plane_.dst_pixel)]);
    vfmadd231ps(Sum(product.pixel), Pixel(product.column), Tap(product.tap));
  }
}

}  // namespace tilewire::convolution
