// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/reorder/channel_blocking_generator.h"

#include <cstddef>

namespace tilewire::reorder {

void ChannelBlockingGenerator::Emit() {
  Preamble();
  mov(src_, ptr[rdi + offsetof(ChannelBlockingArgs, src)]);
  mov(dst_, ptr[rdi + offsetof(ChannelBlockingArgs, dst)]);
  mov(scales_, ptr[rdi + offsetof(ChannelBlockingArgs, scales)]);
  mov(src_step_, ptr[rdi + offsetof(ChannelBlockingArgs, src_step)]);
  mov(dst_step_, ptr[rdi + offsetof(ChannelBlockingArgs, dst_step)]);
  mov(pixels_, ptr[rdi + offsetof(ChannelBlockingArgs, pixels)]);
  if (config_.scattered) mov(offsets_, ptr[rdi + offsetof(ChannelBlockingArgs, offsets)]);
  Prepare();
  if (config_.transposes) {
    EmitTiles();
  } else {
    EmitCopy();
  }
  Postamble();
  EmitTables();
}

void ChannelBlockingGenerator::EmitCopy() {
  Xbyak::Label pixel, group;
  BeginLoads(/*partial=*/false);
  BeginStores(/*partial=*/false);
  L(pixel);
  mov(groups_, ptr[rdi + offsetof(ChannelBlockingArgs, groups)]);
  if (config_.scaled) mov(scales_, ptr[rdi + offsetof(ChannelBlockingArgs, scales)]);
  L(group);
  mov(row_, src_);
  LoadRow(result_, /*partial=*/false);
  Scale(result_);
  mov(row_, dst_);
  if (config_.adds) AddRow(result_, /*partial=*/false);
  StoreRow(result_, /*partial=*/false);
  add(src_, ptr[rdi + offsetof(ChannelBlockingArgs, src_group_step)]);
  add(dst_, ptr[rdi + offsetof(ChannelBlockingArgs, dst_group_step)]);
  if (config_.scaled) add(scales_, config_.channels * static_cast<int>(sizeof(float)));
  dec(groups_);
  jnz(group, T_NEAR);
  add(src_, ptr[rdi + offsetof(ChannelBlockingArgs, src_return)]);
  add(dst_, ptr[rdi + offsetof(ChannelBlockingArgs, dst_return)]);
  dec(pixels_);
  jnz(pixel, T_NEAR);
}

void ChannelBlockingGenerator::EmitTiles() {
  Xbyak::Label tile, partial, done;
  L(tile);
  cmp(pixels_, tile_);
  jb(partial, T_NEAR);
  EmitTile(/*partial=*/false);
  EmitAdvance();
  sub(pixels_, tile_);
  jmp(tile, T_NEAR);
  L(partial);
  test(pixels_, pixels_);
  jz(done, T_NEAR);
  BeginPartial();
  EmitTile(/*partial=*/true);
  L(done);
}

void ChannelBlockingGenerator::EmitTile(bool partial) {
  if (!partial && LoadsTransposed()) {
    mov(row_, src_);
    LoadTransposed(config_.to_lanes ? config_.channels : tile_);
    StoreRows(config_.to_lanes ? tile_ : config_.channels, partial);
    return;
  }
  LoadRows(config_.to_lanes ? config_.channels : tile_, partial);
  for (int i = config_.channels; config_.to_lanes && i < tile_; ++i) {
    vxorps(Vector(i), Vector(i), Vector(i));
  }
  EmitTranspose();
  StoreRows(config_.to_lanes ? tile_ : config_.channels, partial);
}

// To the next tile of pixels: along a row where pixels are neighbours, that many rows on elsewhere.
void ChannelBlockingGenerator::EmitAdvance() {
  const bool to_lanes = config_.to_lanes;
  const DataType type = to_lanes ? config_.src_type : config_.dst_type;
  add(to_lanes ? src_ : dst_, tile_ * static_cast<int>(SizeOf(type)));
  if (config_.scattered) {
    add(offsets_, tile_ * static_cast<int>(sizeof(int32_t)));
    return;
  }
  imul(row_, to_lanes ? dst_step_ : src_step_, tile_);
  add(to_lanes ? dst_ : src_, row_);
}

// The rows of a partial tile whose rows are pixels: as many as there are left.
void ChannelBlockingGenerator::LoadRows(int rows, bool partial) {
  Xbyak::Label done;
  BeginLoads(partial);
  mov(row_, src_);
  for (int i = 0; i < rows; ++i) {
    LoadRow(i, partial);
    if (!config_.to_lanes) Scale(i);
    if (i + 1 == rows) break;
    if (partial && !LoadsPixels()) StopAfter(i + 1, done);
    add(row_, src_step_);
  }
  L(done);
}

void ChannelBlockingGenerator::StoreRows(int rows, bool partial) {
  Xbyak::Label done;
  BeginStores(partial);
  mov(row_, dst_);
  for (int i = 0; i < rows; ++i) {
    if (config_.scattered) {
      movsxd(row_, dword[offsets_ + i * static_cast<int>(sizeof(int32_t))]);
      add(row_, dst_);
    }
    if (config_.to_lanes) Scale(result_ + i);
    if (config_.adds) AddRow(result_ + i, partial);
    StoreRow(result_ + i, partial);
    if (i + 1 == rows) break;
    if (partial && !StoresPixels()) StopAfter(i + 1, done);
    if (!config_.scattered) add(row_, dst_step_);
  }
  L(done);
}

void ChannelBlockingGenerator::StopAfter(int rows, const Xbyak::Label& done) {
  cmp(pixels_, rows);
  jbe(done, T_NEAR);
}

// Where the lanes are channels.
void ChannelBlockingGenerator::Scale(int index) {
  if (config_.scaled) vmulps(Vector(index), Vector(index), ptr[scales_]);
}

void ChannelBlockingGenerator::InterleaveRows() {
  const auto r = [this](int i) { return Vector(i); };
  const auto t = [this](int i) { return Vector(tile_ + i); };
  for (int i = 0; i < tile_; i += 2) {
    vunpcklps(t(i), r(i), r(i + 1));
    vunpckhps(t(i + 1), r(i), r(i + 1));
  }
  for (int i = 0; i < tile_; i += 4) {
    vunpcklpd(r(i), t(i), t(i + 2));
    vunpckhpd(r(i + 1), t(i), t(i + 2));
    vunpcklpd(r(i + 2), t(i + 1), t(i + 3));
    vunpckhpd(r(i + 3), t(i + 1), t(i + 3));
  }
}

}  // namespace tilewire::reorder
