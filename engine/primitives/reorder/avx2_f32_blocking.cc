// SPDX-License-Identifier: Apache-2.0
//
// channel_blocking.h's kernels for AVX2: as avx512_f32_blocking.cc, with tiles of 8 x 8 floats. A
// block of 16 channels is two groups.
#include <utility>

#include "engine/primitives/reorder/channel_blocking.h"

namespace tilewire::reorder {
namespace {

class Avx2F32Blocking final : public jit::Generator {
 public:
  explicit Avx2F32Blocking(const ChannelBlockingConfig& config)
      : Generator("reorder/avx2_f32_blocking", 8192), config_(config) {}

 private:
  static constexpr int kTile = 8;

  const ChannelBlockingConfig config_;
  const Xbyak::Reg64 args_ = rdi;
  const Xbyak::Reg64 src_ = rsi;
  const Xbyak::Reg64 dst_ = rdx;
  const Xbyak::Reg64 src_step_ = r8;
  const Xbyak::Reg64 dst_step_ = r9;
  const Xbyak::Reg64 pixels_ = rcx;     // not yet moved
  const Xbyak::Reg64 row_ = r10;        // walks over the rows of a tile
  const Xbyak::Reg64 lane_mask_ = rax;  // address of the mask of this tile's pixels
  const Xbyak::Reg64 count_ = r11;
  Xbyak::Label masks_;  // 8 lanes on, 8 lanes off

  void Emit() override {
    mov(src_, ptr[args_ + offsetof(ChannelBlockingArgs, src)]);
    mov(dst_, ptr[args_ + offsetof(ChannelBlockingArgs, dst)]);
    mov(src_step_, ptr[args_ + offsetof(ChannelBlockingArgs, src_step)]);
    mov(dst_step_, ptr[args_ + offsetof(ChannelBlockingArgs, dst_step)]);
    mov(pixels_, ptr[args_ + offsetof(ChannelBlockingArgs, pixels)]);
    if (config_.transposes) {
      EmitTiles();
    } else {
      EmitCopy();
    }
    vzeroupper();
    ret();
    align(32);
    L(masks_);
    for (int i = 0; i < 16; ++i) dd(i < 8 ? 0xFFFFFFFF : 0);
  }

  // ymm0 the value, ymm1 the mask of the channels
  void EmitCopy() {
    const bool full = config_.channels == kTile;
    Xbyak::Label step;
    lea(lane_mask_, ptr[rip + masks_]);
    vmovups(ymm1, ptr[lane_mask_ + (kTile - config_.channels) * 4]);
    L(step);
    if (full) {
      vmovups(ymm0, ptr[src_]);
    } else {
      vmaskmovps(ymm0, ymm1, ptr[src_]);
    }
    if (full || config_.to_blocked) {
      vmovups(ptr[dst_], ymm0);
    } else {
      vmaskmovps(ptr[dst_], ymm1, ymm0);
    }
    add(src_, src_step_);
    add(dst_, dst_step_);
    dec(pixels_);
    jnz(step);
  }

  void EmitTiles() {
    Xbyak::Label tile, partial, done;
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
    mov(count_.cvt32(), kTile);
    sub(count_, pixels_);
    lea(lane_mask_, ptr[rip + masks_]);
    lea(lane_mask_, ptr[lane_mask_ + count_ * 4]);
    EmitTile(/*partial=*/true);
    L(done);
  }

  void EmitTile(bool partial) {
    const bool to_blocked = config_.to_blocked;
    LoadRows(to_blocked ? config_.channels : kTile, partial && to_blocked, partial && !to_blocked);
    for (int i = to_blocked ? config_.channels : kTile; i < kTile; ++i) {
      vxorps(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
    }
    EmitTranspose();
    StoreRows(to_blocked ? kTile : config_.channels, partial && !to_blocked, partial && to_blocked);
  }

  // To the next 8 pixels: along a row on the plain side, 8 rows on.
  void EmitAdvance() {
    const Xbyak::Reg64& plain = config_.to_blocked ? src_ : dst_;
    const Xbyak::Reg64& blocked = config_.to_blocked ? dst_ : src_;
    add(plain, kTile * static_cast<int>(sizeof(float)));
    mov(row_, config_.to_blocked ? dst_step_ : src_step_);
    shl(row_, 3);
    add(blocked, row_);
  }

  // Rows go to ymm0, ymm1, ...; `masked` to the pixels that are left, or as many rows as there are
  // pixels left.
  void LoadRows(int rows, bool masked, bool by_pixel) {
    Xbyak::Label done;
    if (masked) vmovups(ymm15, ptr[lane_mask_]);
    mov(row_, src_);
    for (int i = 0; i < rows; ++i) {
      if (masked) {
        vmaskmovps(Xbyak::Ymm(i), ymm15, ptr[row_]);
      } else {
        vmovups(Xbyak::Ymm(i), ptr[row_]);
      }
      if (i + 1 == rows) break;
      if (by_pixel) StopAfter(i + 1, done);
      add(row_, src_step_);
    }
    L(done);
  }

  // From ymm8, ymm9, ...
  void StoreRows(int rows, bool masked, bool by_pixel) {
    Xbyak::Label done;
    if (masked) vmovups(ymm0, ptr[lane_mask_]);
    mov(row_, dst_);
    for (int i = 0; i < rows; ++i) {
      if (masked) {
        vmaskmovps(ptr[row_], ymm0, Xbyak::Ymm(8 + i));
      } else {
        vmovups(ptr[row_], Xbyak::Ymm(8 + i));
      }
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

  // ymm0-7 as rows of a matrix -> its columns in ymm8-15; ymm0-7 are overwritten.
  void EmitTranspose() {
    const auto r = [](int i) { return Xbyak::Ymm(i); };
    const auto t = [](int i) { return Xbyak::Ymm(8 + i); };
    for (int i = 0; i < 8; i += 2) {
      vunpcklps(t(i), r(i), r(i + 1));
      vunpckhps(t(i + 1), r(i), r(i + 1));
    }
    for (int i = 0; i < 8; i += 4) {
      vunpcklpd(r(i), t(i), t(i + 2));
      vunpckhpd(r(i + 1), t(i), t(i + 2));
      vunpcklpd(r(i + 2), t(i + 1), t(i + 3));
      vunpckhpd(r(i + 3), t(i + 1), t(i + 3));
    }
    for (int q = 0; q < 4; ++q) {
      vperm2f128(t(q), r(q), r(4 + q), 0x20);
      vperm2f128(t(4 + q), r(q), r(4 + q), 0x31);
    }
  }
};

}  // namespace

absl::StatusOr<ReorderDesc> ResolveAvx2F32Blocking(const ReorderDesc& desc,
                                                   const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireChannelBlocking(desc, attributes));
  return desc;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Blocking(const ReorderDesc& desc,
                                                                 const Attributes& attributes,
                                                                 absl::string_view name) {
  return CreateChannelBlocking(desc, attributes, name, /*lanes=*/8,
                               [](const ChannelBlockingConfig& config)
                                   -> absl::StatusOr<std::unique_ptr<const jit::Generator>> {
                                 return jit::Compile<Avx2F32Blocking>(config);
                               });
}

}  // namespace tilewire::reorder
