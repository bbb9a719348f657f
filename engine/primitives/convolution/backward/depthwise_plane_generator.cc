// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/convolution/backward/depthwise_plane_generator.h"

#include <algorithm>
#include <cstddef>

#include "engine/base/cache_line.h"
#include "engine/kernels/tiles/row_tiles.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kOthers = 2;        // registers: the sum of the bias and a pixel of src
constexpr int64_t kFewestPixels = 2;  // fewer would load a vector for each product

int64_t MostPixels(const DepthwisePlane& plane) {
  const int64_t sums = (plane.tap_rows.end - plane.tap_rows.begin) * plane.taps;
  return std::min(DepthwisePlaneGenerator::kMostPixels, plane.unit.registers() - kOthers - sums);
}

// Pixels that a line holds, where they follow each other.
int64_t PixelsOfLine(int64_t pixel_bytes) {
  return std::max<int64_t>(1, kLineBytes / std::max<int64_t>(1, pixel_bytes));
}

}  // namespace

int64_t DepthwisePlaneGenerator::MostTapRows(const VectorUnit& unit, int64_t taps) {
  return (unit.registers() - kOthers - kFewestPixels) / taps;
}

DepthwisePlaneGenerator::DepthwisePlaneGenerator(absl::string_view name,
                                                 const DepthwisePlane& plane)
    : Generator(name),
      plane_(plane),
      tiles_(CutIntoTiles(plane.dst_pixels, MostPixels(plane), 1,
                          [this](int64_t first, int64_t pixels) { return TileAt(first, pixels); })),
      tail_(this, plane.unit, {.spare = rax, .opmask = k2, .vector = Dst(0).getIdx()}) {}

DepthwisePlaneGenerator::Tile DepthwisePlaneGenerator::TileAt(int64_t first, int64_t pixels) const {
  Tile tile{.pixels = static_cast<int>(pixels)};
  for (int64_t tap = 0; tap < plane_.taps; ++tap) {
    for (int pixel = 0; pixel < tile.pixels; ++pixel) {
      const int64_t at = pixel * plane_.stride + tap * plane_.tap_step - plane_.pad;
      const int64_t column = first * plane_.stride + at;
      if (column >= 0 && column < plane_.src_pixels) tile.products.push_back({at, tap, pixel});
    }
  }
  tile.SortByColumns();
  return tile;
}

void DepthwisePlaneGenerator::Emit() {
  Preamble();
  LoadArguments();
  for (int i = 0; i <= Sums(); ++i) plane_.unit.Zero(this, plane_.unit.Vector(i));
  for (const OutputSegment& segment : plane_.rows) {
    Xbyak::Label next;
    mov(rows_, segment.outputs.end - segment.outputs.begin);
    L(next);
    EmitRow(segment.taps);
    add(src_row_, static_cast<int>(plane_.row_stride * plane_.src_row));
    add(dst_row_, static_cast<int>(plane_.dst_row));
    dec(rows_);
    jnz(next, T_NEAR);
  }
  AddSums();
  Postamble();
  if (plane_.tail_lanes != 0) tail_.EmitTable();
}

void DepthwisePlaneGenerator::LoadArguments() {
  mov(src_row_, ptr[args_ + offsetof(DepthwisePlaneArgs, src)]);
  mov(dst_row_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_dst)]);
  if (!plane_.fetches_ahead) return;
  mov(src_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, ahead.src)]);
  mov(dst_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, ahead.diff_dst)]);
  mov(to_next_, ptr[args_ + offsetof(DepthwisePlaneArgs, rows_to_next)]);
}

void DepthwisePlaneGenerator::EmitRow(const TapRange& tap_rows) {
  if (tap_rows.begin < tap_rows.end || plane_.has_bias) {
    mov(src_, src_row_);
    mov(dst_, dst_row_);
    for (const Tile& tile : tiles_) EmitTiles(tap_rows, tile);
  }
  if (plane_.fetches_ahead) TurnToNext();
}

void DepthwisePlaneGenerator::EmitTiles(const TapRange& tap_rows, const Tile& tile) {
  Xbyak::Label next;
  if (tile.count > 1) mov(turns_, tile.count);
  L(next);
  EmitTile(tap_rows, tile);
  add(src_, static_cast<int>(tile.pixels * plane_.stride * plane_.src_pixel));
  add(dst_, static_cast<int>(tile.pixels * plane_.dst_pixel));
  if (tile.count == 1) return;
  dec(turns_);
  jnz(next, T_NEAR);
}

void DepthwisePlaneGenerator::EmitTile(const TapRange& tap_rows, const Tile& tile) {
  if (plane_.fetches_ahead) FetchAhead(tile.pixels);
  for (int pixel = 0; pixel < tile.pixels; ++pixel) {
    vmovups(Dst(pixel), ptr[dst_ + static_cast<int>(pixel * plane_.dst_pixel)]);
    if (plane_.has_bias) vaddps(BiasSum(), BiasSum(), Dst(pixel));
  }
  const absl::Span<const Product> all = tile.products;
  for (size_t begin = 0, end; begin < all.size(); begin = end) {
    end = begin + 1;
    while (end < all.size() && all[end].column == all[begin].column) ++end;
    EmitColumn(tap_rows, all.subspan(begin, end - begin));
  }
}

void DepthwisePlaneGenerator::EmitColumn(const TapRange& tap_rows,
                                         absl::Span<const Product> products) {
  for (int64_t row = tap_rows.begin; row < tap_rows.end; ++row) {
    const auto at = ptr[src_ + static_cast<int>(row * plane_.src_tap_row +
                                                products[0].column * plane_.src_pixel)];
    if (products.size() == 1) {
      vfmadd231ps(Sum(row, products[0].tap), Dst(products[0].pixel), at);
      continue;
    }
    vmovups(Source(), at);
    for (const Product& product : products)
      vfmadd231ps(Sum(row, product.tap), Dst(product.pixel), Source());
  }
}

// The first alone of the rows of src that an output row steps over: all of them took longer.
void DepthwisePlaneGenerator::FetchAhead(int pixels) {
  for (int64_t pixel = 0; pixel < pixels; pixel += PixelsOfLine(plane_.dst_pixel))
    prefetcht0(ptr[dst_ + dst_ahead_ + static_cast<int>(pixel * plane_.dst_pixel)]);
  for (int64_t pixel = 0; pixel < pixels * plane_.stride; pixel += PixelsOfLine(plane_.src_pixel))
    prefetcht0(ptr[src_ + src_ahead_ + static_cast<int>(pixel * plane_.src_pixel)]);
}

void DepthwisePlaneGenerator::TurnToNext() {
  Xbyak::Label not_yet;
  dec(to_next_);
  jnz(not_yet, T_NEAR);
  mov(src_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, next_ahead.src)]);
  mov(dst_ahead_, ptr[args_ + offsetof(DepthwisePlaneArgs, next_ahead.diff_dst)]);
  L(not_yet);
}

void DepthwisePlaneGenerator::AddSums() {
  const Xbyak::Xmm before = Source();
  mov(to_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_weights)]);
  for (int64_t row = plane_.tap_rows.begin; row < plane_.tap_rows.end; ++row) {
    for (int64_t tap = 0; tap < plane_.taps; ++tap) {
      const int at = static_cast<int>(row * plane_.weights_tap_row + tap * plane_.weights_tap);
      vaddps(before, Sum(row, tap), ptr[to_ + at]);
      vmovups(ptr[to_ + at], before);
    }
  }
  if (!plane_.has_bias) return;
  const bool masked = plane_.tail_lanes != 0;
  if (masked) tail_.Set(plane_.tail_lanes);
  mov(to_, ptr[args_ + offsetof(DepthwisePlaneArgs, diff_bias)]);
  tail_.Load(before, ptr[to_], masked);
  vaddps(before, before, BiasSum());
  tail_.Store(ptr[to_], before, masked);
}

}  // namespace tilewire::convolution
