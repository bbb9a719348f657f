// SPDX-License-Identifier: Apache-2.0
//
// channel_blocking.h's kernels for AVX-512. The transposing one takes 16 pixels at a time: it loads
// one register a row of the source, transposes 16 x 16 floats in registers and stores one register
// a row of the destination. Rows of the source that do not exist are zeros (channels) or left as
// they are (pixels, whose lanes are not stored).
#include <utility>

#include "engine/primitives/reorder/channel_blocking.h"

namespace tilewire::reorder {
namespace {

class Avx512F32Blocking final : public jit::Generator {
 public:
  explicit Avx512F32Blocking(const ChannelBlockingConfig& config)
      : Generator("reorder/avx512_f32_blocking", 8192), config_(config) {}

 private:
  static constexpr int kTile = 16;

  const ChannelBlockingConfig config_;
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi;
  const Xbyak::Reg64 dst_ = rdx;
  const Xbyak::Reg64 src_step_ = r8;
  const Xbyak::Reg64 dst_step_ = r9;
  const Xbyak::Reg64 pixels_ = rcx;  // not yet moved
  const Xbyak::Reg64 row_ = r10;     // walks over the rows of a tile
  const Xbyak::Reg64 mask_ = rax;
  const Xbyak::Opmask channel_lanes_ = k1;  // lanes that hold channels
  const Xbyak::Opmask group_lanes_ = k2;    // lanes of the group on the blocked side
  const Xbyak::Opmask pixel_lanes_ = k3;    // pixels of this tile

  void Emit() override {
    mov(src_, ptr[args_ + offsetof(ChannelBlockingArgs, src)]);
    mov(dst_, ptr[args_ + offsetof(ChannelBlockingArgs, dst)]);
    mov(src_step_, ptr[args_ + offsetof(ChannelBlockingArgs, src_step)]);
    mov(dst_step_, ptr[args_ + offsetof(ChannelBlockingArgs, dst_step)]);
    mov(pixels_, ptr[args_ + offsetof(ChannelBlockingArgs, pixels)]);
    mov(mask_.cvt32(), (1 << config_.channels) - 1);
    kmovw(channel_lanes_, mask_.cvt32());
    mov(mask_.cvt32(), (1 << config_.group) - 1);
    kmovw(group_lanes_, mask_.cvt32());
    if (config_.transposes) {
      EmitTiles();
    } else {
      EmitCopy();
    }
    vzeroupper();
    ret();
  }

  void EmitCopy() {
    const Xbyak::Opmask& stored = config_.to_blocked ? group_lanes_ : channel_lanes_;
    Xbyak::Label step;
    L(step);
    vmovups(zmm0 | channel_lanes_ | T_z, ptr[src_]);
    vmovups(ptr[dst_] | stored, zmm0);
    add(src_, src_step_);
    add(dst_, dst_step_);
    dec(pixels_);
    jnz(step);
  }

  void EmitTiles() {
    Xbyak::Label tile, partial, done;
    mov(mask_.cvt32(), 0xFFFF);
    kmovw(pixel_lanes_, mask_.cvt32());
    L(tile);
    cmp(pixels_, kTile);
    jb(partial, T_NEAR);
    EmitTile(/*partial=*/false);
    EmitAdvance();
    sub(pixels_, kTile);
    jmp(tile, T_NEAR);
    L(partial);
    test(pixels_, pixels_);
    jz(done, T_NEAR);
    bzhi(mask_.cvt32(), mask_.cvt32(), pixels_.cvt32());
    kmovw(pixel_lanes_, mask_.cvt32());
    EmitTile(/*partial=*/true);
    L(done);
  }

  void EmitTile(bool partial) {
    if (config_.to_blocked) {
      LoadRows(config_.channels, pixel_lanes_, false);
      for (int i = config_.channels; i < kTile; ++i) {
        vpxord(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i));
      }
      EmitTranspose();
      StoreRows(kTile, group_lanes_, partial);
    } else {
      LoadRows(kTile, channel_lanes_, partial);
      EmitTranspose();
      StoreRows(config_.channels, pixel_lanes_, false);
    }
  }

  // To the next 16 pixels: along a row on the plain side, 16 rows on.
  void EmitAdvance() {
    const Xbyak::Reg64& plain = config_.to_blocked ? src_ : dst_;
    const Xbyak::Reg64& blocked = config_.to_blocked ? dst_ : src_;
    add(plain, kTile * static_cast<int>(sizeof(float)));
    mov(row_, config_.to_blocked ? dst_step_ : src_step_);
    shl(row_, 4);
    add(blocked, row_);
  }

  // Rows go to zmm0, zmm1, ...; with `by_pixel` only as many as there are pixels left.
  void LoadRows(int rows, const Xbyak::Opmask& lanes, bool by_pixel) {
    Xbyak::Label done;
    mov(row_, src_);
    for (int i = 0; i < rows; ++i) {
      vmovups(Xbyak::Zmm(i) | lanes | T_z, ptr[row_]);
      if (i + 1 == rows) break;
      if (by_pixel) StopAfter(i + 1, done);
      add(row_, src_step_);
    }
    L(done);
  }

  void StoreRows(int rows, const Xbyak::Opmask& lanes, bool by_pixel) {
    Xbyak::Label done;
    mov(row_, dst_);
    for (int i = 0; i < rows; ++i) {
      vmovups(ptr[row_] | lanes, Xbyak::Zmm(i));
      if (i + 1 == rows) break;
      if (by_pixel) StopAfter(i + 1, done);
      add(row_, dst_step_);
    }
    L(done);
  }

  void StopAfter(int rows, const Xbyak::Label& done) {
    cmp(pixels_, rows);
    jbe(done, T_NEAR);
  }

  // zmm0-15 as rows of a matrix -> its columns; zmm16-31 are overwritten.
  void EmitTranspose() {
    const auto r = [](int i) { return Xbyak::Zmm(i); };
    const auto t = [](int i) { return Xbyak::Zmm(16 + i); };
    for (int i = 0; i < 16; i += 2) {
      vunpcklps(t(i), r(i), r(i + 1));
      vunpckhps(t(i + 1), r(i), r(i + 1));
    }
    for (int i = 0; i < 16; i += 4) {
      vunpcklpd(r(i), t(i), t(i + 2));
      vunpckhpd(r(i + 1), t(i), t(i + 2));
      vunpcklpd(r(i + 2), t(i + 1), t(i + 3));
      vunpckhpd(r(i + 3), t(i + 1), t(i + 3));
    }
    // Now lane l (128 bits) of r(4g + q) holds rows 4g .. 4g+3 of column 4l + q.
    for (int q = 0; q < 4; ++q) {
      vshuff32x4(t(0), r(q), r(4 + q), 0x88);
      vshuff32x4(t(1), r(8 + q), r(12 + q), 0x88);
      vshuff32x4(t(2), r(q), r(4 + q), 0xDD);
      vshuff32x4(t(3), r(8 + q), r(12 + q), 0xDD);
      vshuff32x4(r(q), t(0), t(1), 0x88);
      vshuff32x4(r(8 + q), t(0), t(1), 0xDD);
      vshuff32x4(r(4 + q), t(2), t(3), 0x88);
      vshuff32x4(r(12 + q), t(2), t(3), 0xDD);
    }
  }
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveAvx512F32Blocking(const ReorderDesc& desc,
                                                     const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireChannelBlocking(desc, attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Blocking(const ReorderDesc& desc,
                                                                   const Attributes& attributes,
                                                                   absl::string_view name) {
  return CreateChannelBlocking(desc, attributes, name, /*lanes=*/16,
                               [](const ChannelBlockingConfig& config)
                                   -> absl::StatusOr<std::unique_ptr<const jit::Generator>> {
                                 return jit::Compile<Avx512F32Blocking>(config);
                               });
}

}  // namespace tilewire::reorder
