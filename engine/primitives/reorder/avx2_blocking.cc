// SPDX-License-Identifier: Apache-2.0
//
// The kernels of channel_blocking.h for AVX2: tiles of 8 x 8 floats; a block of 16 channels is two
// groups. Rows that are not whole are moved under a mask if they are f32; those of other types go
// through 32 bytes of the stack's red zone.
#include <bit>

#include "engine/kernels/elements/vector_conversion.h"
#include "engine/primitives/reorder/channel_blocking.h"

namespace tilewire::reorder {
namespace {

class Avx2Blocking final : public ChannelBlockingGenerator {
 public:
  explicit Avx2Blocking(const ChannelBlockingConfig& config)
      : ChannelBlockingGenerator("reorder/avx2_blocking", config, VectorUnit::Of(cpu::Isa::kAvx2),
                                 /*result=*/8),
        conversion_(this, unit_, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {0, 1, 2}, .tail = k1, .mask = k2}) {}

 private:
  static constexpr int kTile = 8;

  const Xbyak::Reg64 index_ = r13, count_ = r11, byte_ = r14;  // of bytes that are copied
  const Xbyak::Reg64 bounce_ = rbx;                            // address of the bytes on the stack
  // Free while rows are loaded, or while they are stored; of a copying kernel all the time.
  const Xbyak::Ymm load_mask_ = ymm15;
  const Xbyak::Ymm before_row_ = ymm3, sum_scale_ = ymm4, store_mask_ = ymm5;
  VectorConversion conversion_;
  jit::MaskTable masks_;

  // Whether a row has fewer than 8 lanes.
  bool LoadsPart(bool partial) const { return LoadsPixels() ? partial : config_.readable < kTile; }
  bool StoresPart(bool partial) const { return StoresPixels() ? partial : config_.stored < kTile; }

  void Prepare() override { lea(bounce_, ptr[rsp - 64]); }
  void BeginPartial() override {}

  void BeginLoads(bool partial) override {
    if (LoadsPart(partial) && config_.src_type == DataType::kF32) {
      LoadMask(load_mask_, LoadsPixels(), config_.channels);
    }
  }

  void BeginStores(bool partial) override {
    conversion_.BeginStores(config_.dst_type);
    if (config_.adds) {
      conversion_.Broadcast(sum_scale_, std::bit_cast<uint32_t>(config_.sum_scale));
    }
    if (StoresPart(partial) && config_.dst_type == DataType::kF32) {
      LoadMask(store_mask_, StoresPixels(), config_.stored);
    }
  }

  // Loads the mask of the pixels that are left, or of `channels`.
  void LoadMask(const Xbyak::Ymm& mask, bool pixels, int channels) {
    mov(count_, pixels ? kTile : kTile - channels);
    if (pixels) sub(count_, pixels_);
    masks_.LoadAddress(this, spare_);
    vmovups(mask, ptr[spare_ + count_ * 4]);
  }

  void LoadRow(int index, bool partial) override {
    if (!LoadsPixels() && config_.channels == 0) {
      vxorps(Vector(index), Vector(index), Vector(index));
    } else if (LoadsPart(partial)) {
      LoadPart(config_.src_type, Vector(index), load_mask_, LoadsPixels());
    } else {
      conversion_.Load(config_.src_type, Vector(index), row_, /*tail=*/false);
    }
  }

  void LoadPart(DataType type, const Xbyak::Xmm& to, const Xbyak::Ymm& mask, bool pixels) {
    if (type == DataType::kF32) {
      vmaskmovps(to, mask, ptr[row_]);
      return;
    }
    vxorps(to, to, to);
    vmovups(ptr[bounce_], to);
    CopyBytes(bounce_, row_, type, pixels);
    conversion_.Load(type, to, bounce_, /*tail=*/false);
  }

  void AddRow(int index, bool partial) override {
    if (StoresPart(partial)) {
      LoadPart(config_.dst_type, before_row_, store_mask_, StoresPixels());
    } else {
      conversion_.Load(config_.dst_type, before_row_, row_, /*tail=*/false);
    }
    vmulps(before_row_, before_row_, sum_scale_);
    vaddps(Vector(index), Vector(index), before_row_);
    if (!StoresPixels() && config_.channels < kTile) {  // the rest of a block after its channels
      masks_.LoadAddress(this, spare_);
      vandps(Vector(index), Vector(index), ptr[spare_ + (kTile - config_.channels) * 4]);
    }
  }

  void StoreRow(int index, bool partial) override {
    const Xbyak::Xmm value = Vector(index);
    if (!StoresPart(partial)) {
      conversion_.Store(config_.dst_type, value, row_, /*tail=*/false);
    } else if (config_.dst_type == DataType::kF32) {
      vmaskmovps(ptr[row_], store_mask_, value);
    } else {
      conversion_.Store(config_.dst_type, value, bounce_, /*tail=*/false);
      CopyBytes(row_, bounce_, config_.dst_type, StoresPixels());
    }
  }

  // Copies as many elements as there are pixels left, or channels of dst.
  void CopyBytes(const Xbyak::Reg64& to, const Xbyak::Reg64& from, DataType type, bool pixels) {
    const int size = static_cast<int>(SizeOf(type));
    if (pixels) {
      imul(count_, pixels_, size);
    } else {
      mov(count_, config_.channels * size);
    }
    Xbyak::Label next;
    xor_(index_.cvt32(), index_.cvt32());
    L(next);
    mov(byte_.cvt8(), byte[from + index_]);
    mov(byte[to + index_], byte_.cvt8());
    inc(index_);
    cmp(index_, count_);
    jb(next);
  }

  // ymm0-7 as rows of a matrix -> its columns in ymm8-15; ymm0-7 are overwritten.
  void EmitTranspose() override {
    const auto r = [](int i) { return Xbyak::Ymm(i); };
    const auto t = [](int i) { return Xbyak::Ymm(8 + i); };
    InterleaveRows();
    for (int q = 0; q < 4; ++q) {
      vperm2f128(t(q), r(q), r(4 + q), 0x20);
      vperm2f128(t(4 + q), r(q), r(4 + q), 0x31);
    }
  }

  void EmitTables() override {
    conversion_.EmitTable();
    masks_.Emit(this, unit_);
  }
};

}  // namespace

absl::StatusOr<std::unique_ptr<const jit::Generator>> CompileAvx2ChannelBlocking(
    const ChannelBlockingConfig& config) {
  return jit::Compile<Avx2Blocking>(config);
}

}  // namespace tilewire::reorder
