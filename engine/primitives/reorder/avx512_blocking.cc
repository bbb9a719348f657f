// SPDX-License-Identifier: Apache-2.0
//
// The kernels of channel_blocking.h for AVX-512: tiles of 16 x 16 floats. Rows that are not whole
// are moved under a mask.
#include <bit>

#include "engine/jit/tail_mask.h"
#include "engine/kernels/elements/vector_conversion.h"
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
    if (!LoadsTransposed()) return;
    for (int quarter : {1, 2, 3}) {
      mov(spare_.cvt32(), 0xF << 4 * quarter);
      kmovw(Quarter(quarter), spare_.cvt32());
    }
  }

  // The lanes of a quarter of a vector but the first.
  Xbyak::Opmask Quarter(int index) const { return Xbyak::Opmask(4 + index); }

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
    InterleaveRows();
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

  // The rows lie in memory as they are moved, and the lanes need no scale before they change place.
  bool LoadsTransposed() const override {
    return config_.transposes && config_.src_type == DataType::kF32 &&
           (config_.to_lanes ? config_.channels > 0 : config_.channels == kTile && !config_.scaled);
  }

  // Quarter l of zmm(16 + 4i + q) becomes quarter q of row 4l + i: loads do half of the work of a
  // transposition, and the shuffles what is left of it, four rows of four columns at a time.
  void LoadTransposed(int rows) override {
    constexpr int kQuarters = 4, kQuarterBytes = 16;
    for (int row = 0; row < kTile; ++row) {
      const int i = row % kQuarters;  // rows in the order of memory
      const Xbyak::Opmask lanes = Quarter(row / kQuarters);
      for (int q = 0; q < kQuarters; ++q) {
        const Xbyak::Zmm to(kTile + i * kQuarters + q);
        const Xbyak::Address from = ptr[row_ + q * kQuarterBytes];
        if (row >= rows) {
          if (row < kQuarters) vpxord(to, to, to);
        } else if (row < kQuarters) {
          vmovups(Xbyak::Xmm(to.getIdx()), from);
        } else {
          vbroadcastf32x4(to | lanes, from);
        }
      }
      if (row + 1 < rows) add(row_, src_step_);
    }
    for (int q = 0; q < kQuarters; ++q) TransposeQuarters(q);
  }

  // The four columns of each quarter of zmm(16 + 4i + q), for i from 0 to 3, to zmm(4q) and the
  // next three.
  void TransposeQuarters(int q) {
    const auto row = [q](int i) { return Xbyak::Zmm(kTile + 4 * i + q); };
    const auto column = [q](int i) { return Xbyak::Zmm(4 * q + i); };
    vunpcklps(column(0), row(0), row(1));
    vunpckhps(column(2), row(0), row(1));
    vunpcklps(row(0), row(2), row(3));
    vunpckhps(row(1), row(2), row(3));
    vunpckhpd(column(1), column(0), row(0));
    vunpcklpd(column(0), column(0), row(0));
    vunpckhpd(column(3), column(2), row(1));
    vunpcklpd(column(2), column(2), row(1));
  }

  void EmitTables() override { stores_.EmitTable(); }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileAvx512ChannelBlocking(
    const ChannelBlockingConfig& config) {
  return jit::Compile<Avx512Blocking>(config);
}

}  // namespace tilewire::reorder
