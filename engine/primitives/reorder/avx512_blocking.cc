// SPDX-License-Identifier: Apache-2.0
//
// The kernels of channel_blocking.h for AVX-512: tiles of 16 x 16 floats. Rows that are not whole
// are moved under a mask.
#include <bit>

#include "engine/base/status_macros.h"
#include "engine/jit/tail_mask.h"
#include "engine/kernels/vector_conversion.h"
#include "engine/primitives/reorder/channel_blocking.h"

namespace tilewire::reorder {
namespace {

class Avx512Blocking final : public ChannelBlockingGenerator {
 public:
  explicit Avx512Blocking(const ChannelBlockingConfig& config)
      : ChannelBlockingGenerator("reorder/avx512_blocking", config,
                                 VectorUnit::Of(cpu::Isa::kAvx512), /*result=*/0),
        loads_(Conversion(LoadsPixels() ? pixel_lanes_ : channel_lanes_)),
        before_(Conversion(StoresPixels() ? pixel_lanes_ : channel_lanes_)),
        stores_(Conversion(StoresPixels() ? pixel_lanes_ : stored_lanes_)) {}

 private:
  static constexpr int kTile = 16;

  const Xbyak::Opmask channel_lanes_ = k1;                   // lanes that hold channels
  const Xbyak::Opmask stored_lanes_ = k2;                    // those and the rest of a block
  const Xbyak::Opmask pixel_lanes_ = k3;                     // pixels of this tile
  const Xbyak::Zmm before_row_ = zmm19, sum_scale_ = zmm20;  // free outside of the transposition
  VectorConversion loads_, before_, stores_;

  VectorConversion Conversion(const Xbyak::Opmask& lanes) {
    return VectorConversion(this, unit_, /*tail_lanes=*/0,
                            {.spare = rax, .scratch = {16, 17, 18}, .tail = lanes, .mask = k4});
  }

  void Prepare() override {
    Tail(channel_lanes_).Set(config_.channels);
    Tail(stored_lanes_).Set(config_.stored);
    Tail(pixel_lanes_).Set(kTile);
  }

  void BeginPartial() override { Tail(pixel_lanes_).Set(pixels_); }

  jit::TailMask Tail(const Xbyak::Opmask& mask) {
    return jit::TailMask(this, unit_, {.spare = spare_, .opmask = mask});
  }

  void BeginLoads(bool) override {}

  void BeginStores(bool) override {
    stores_.BeginStores(config_.dst_type);
    if (config_.adds) {
      stores_.Broadcast(sum_scale_, std::bit_cast<uint32_t>(config_.sum_scale));
    }
  }

  void LoadRow(int index, bool partial) override {
    if (!LoadsPixels() && config_.readable <= 4 && config_.src_type == DataType::kF32) {
      // Shorter accesses cross fewer cache lines.
      Tail(channel_lanes_).Load(Xbyak::Xmm(index), ptr[row_]);
      return;
    }
    loads_.Load(config_.src_type, Vector(index), row_,
                LoadsPixels() ? partial : config_.channels < kTile);
  }

  void AddRow(int index, bool) override {
    before_.Load(config_.dst_type, before_row_, row_, /*tail=*/true);
    vmulps(before_row_, before_row_, sum_scale_);
    vaddps(Vector(index), Vector(index), before_row_);
  }

  void StoreRow(int index, bool partial) override {
    if (!StoresPixels() && config_.stored <= 4 && config_.dst_type == DataType::kF32) {
      Tail(stored_lanes_).Store(ptr[row_], Xbyak::Xmm(index));
      return;
    }
    stores_.Store(config_.dst_type, Vector(index), row_,
                  StoresPixels() ? partial : config_.stored < kTile);
  }

  // zmm0-15 as rows of a matrix -> its columns; zmm16-31 are overwritten.
  void EmitTranspose() override {
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

  void EmitTables() override { stores_.EmitTable(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileAvx512ChannelBlocking(
    const ChannelBlockingConfig& config) {
  return jit::Compile<Avx512Blocking>(config);
}

}  // namespace tilewire::reorder
