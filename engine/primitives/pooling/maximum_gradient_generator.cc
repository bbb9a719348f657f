// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/pooling/maximum_gradient_generator.h"

#include <cstddef>

#include "engine/kernels/tiles/row_tiles.h"

namespace tilewire::pooling {
namespace {

constexpr int kFloatBytes = sizeof(float);
constexpr int kPlaceBytes = MaximumGradientGenerator::kLanes;

}  // namespace

MaximumGradientGenerator::MaximumGradientGenerator(absl::string_view name,
                                                   const MaximumGradientPlane& plane)
    : Generator(name),
      plane_(plane),
      tiles_(
          CutIntoTiles(plane.columns.in, kMostPixels, plane.columns.stride,
                       [this](int64_t first, int64_t pixels) { return TileAt(first, pixels); })) {}

MaximumGradientGenerator::Tile MaximumGradientGenerator::TileAt(int64_t first,
                                                                int64_t pixels) const {
  const Axis& axis = plane_.columns;
  Tile tile{.pixels = static_cast<int>(pixels)};
  for (int64_t window = 0; window < axis.out; ++window) {
    for (int64_t tap = 0; tap < axis.kernel; ++tap) {
      const int64_t pixel = window * axis.stride + tap - axis.padding - first;
      if (pixel >= 0 && pixel < pixels)
        tile.holds.push_back({window - first / axis.stride, tap, static_cast<int>(pixel)});
    }
  }
  return tile;
}

void MaximumGradientGenerator::Emit() {
  Xbyak::Label next_row;
  Preamble();
  mov(rows_, ptr[args_ + offsetof(MaximumGradientArgs, rows)]);
  mov(count_, ptr[args_ + offsetof(MaximumGradientArgs, count)]);
  mov(src_row_, ptr[args_ + offsetof(MaximumGradientArgs, diff_src)]);
  mov(diff_dst_, ptr[args_ + offsetof(MaximumGradientArgs, diff_dst)]);
  mov(places_, ptr[args_ + offsetof(MaximumGradientArgs, places)]);
  L(next_row);
  mov(column_, ptr[rows_ + offsetof(WindowRows, diff_dst)]);
  mov(src_, src_row_);
  for (const Tile& tile : tiles_) EmitTiles(tile);
  add(src_row_, static_cast<int>(plane_.rows.src_stride * kFloatBytes));
  add(rows_, static_cast<int>(sizeof(WindowRows)));
  dec(count_);
  jnz(next_row, T_NEAR);
  if (plane_.streams) sfence();  // before other threads are told that the piece has ended
  Postamble();
  EmitTaps();
}

void MaximumGradientGenerator::EmitTiles(const Tile& tile) {
  const Axis& axis = plane_.columns;
  Xbyak::Label next;
  if (tile.count > 1) mov(turns_, tile.count);
  L(next);
  EmitTile(tile);
  add(src_, static_cast<int>(tile.pixels * axis.src_stride * kFloatBytes));
  add(column_, static_cast<int>(tile.pixels / axis.stride * axis.dst_stride));
  if (tile.count == 1) return;
  dec(turns_);
  jnz(next, T_NEAR);
}

void MaximumGradientGenerator::EmitTile(const Tile& tile) {
  const Axis& axis = plane_.rows;
  Xbyak::Label next_windows, store;
  for (int i = 0; i < 2 * tile.pixels; ++i) vpxord(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i));
  mov(left_, ptr[rows_ + offsetof(WindowRows, count)]);
  test(left_, left_);
  jz(store, T_NEAR);
  mov(place_, ptr[rows_ + offsetof(WindowRows, place)]);
  mov(at_, column_);
  L(next_windows);
  lea(at_dst_, ptr[diff_dst_ + at_ * kFloatBytes]);
  lea(at_places_, ptr[places_ + at_]);
  vpbroadcastb(first_place_, place_.cvt8());
  EmitWindows(tile);
  add(at_, static_cast<int>(axis.dst_stride));
  sub(place_, static_cast<int>(axis.stride * plane_.columns.kernel));
  dec(left_);
  jnz(next_windows, T_NEAR);
  L(store);
  EmitStores(tile);
}

// A row of windows. Numbers of places are compared less that of the row's first pixel.
void MaximumGradientGenerator::EmitWindows(const Tile& tile) {
  int set = 0;
  for (size_t i = 0; i < tile.holds.size(); ++i) {
    const Hold& hold = tile.holds[i];
    if (i == 0 || tile.holds[i - 1].window != hold.window) {
      set = 1 - set;
      LoadWindow(hold.window, set);
    }
    const Xbyak::Opmask low = i % 2 == 0 ? k1 : k3, high = i % 2 == 0 ? k2 : k4;
    vpcmpeqb(low, Places(set), ptr[rip + taps_ + static_cast<int>(hold.tap * kPlaceBytes)]);
    kshiftrw(high, low, kLanes / 2);
    vaddpd(Sum(hold.pixel, 0) | low, Sum(hold.pixel, 0), Gradient(set, 0));
    vaddpd(Sum(hold.pixel, 1) | high, Sum(hold.pixel, 1), Gradient(set, 1));
  }
}

void MaximumGradientGenerator::LoadWindow(int64_t window, int set) {
  const auto element = static_cast<int>(window * plane_.columns.dst_stride);
  constexpr int kHalf = kLanes / 2 * kFloatBytes;
  vmovdqu8(Places(set), ptr[at_places_ + element]);
  vpsubb(Places(set), Places(set), first_place_);
  vcvtps2pd(Gradient(set, 0), ptr[at_dst_ + element * kFloatBytes]);
  vcvtps2pd(Gradient(set, 1), ptr[at_dst_ + element * kFloatBytes + kHalf]);
}

void MaximumGradientGenerator::EmitStores(const Tile& tile) {
  for (int pixel = 0; pixel < tile.pixels; ++pixel) {
    const Xbyak::Zmm low = Sum(pixel, 0), high = Sum(pixel, 1);
    const auto to = ptr[src_ + static_cast<int>(pixel * plane_.columns.src_stride * kFloatBytes)];
    vcvtpd2ps(Xbyak::Ymm(low.getIdx()), low);
    vcvtpd2ps(Xbyak::Ymm(high.getIdx()), high);
    vinsertf64x4(low, low, Xbyak::Ymm(high.getIdx()), 1);
    plane_.streams ? vmovntps(to, low) : vmovups(to, low);
  }
}

// The number of each tap of a row of windows, in all bytes.
void MaximumGradientGenerator::EmitTaps() {
  align(kPlaceBytes);
  L(taps_);
  for (int64_t tap = 0; tap < plane_.columns.kernel; ++tap) {
    for (int lane = 0; lane < kPlaceBytes; ++lane) db(static_cast<uint8_t>(tap));
  }
}

}  // namespace tilewire::pooling
