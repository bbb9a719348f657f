// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/deconvolution/few_outputs_generator.h"

#include <cstddef>

#include "engine/kernels/lane_sums.h"

namespace tilewire::deconvolution {
namespace {

constexpr int64_t kFarthestRow = 1 << 30;  // in bytes, that a displacement reaches

}  // namespace

FewOutputsGenerator::FewOutputsGenerator(absl::string_view name, const FewOutputsConfig& config)
    : AccumulatorTile(
          name, EpilogueOfLaneSums(config.unit, config.pixels * config.phases, config.post_ops)),
      config_(config),
      tail_(this, config.unit,
            {.spare = rax, .opmask = k3, .vector = config.unit.registers() - 1}) {}

void FewOutputsGenerator::Emit() {
  mov(tap_, ptr[args_ + offsetof(TileArgs, taps)]);
  mov(taps_left_, ptr[args_ + offsetof(TileArgs, tap_count)]);
  mov(dst_, ptr[args_ + offsetof(TileArgs, dst)]);
  for (int i = 0; i < config_.unit.lanes(); ++i) config_.unit.Zero(this, Vector(i));
  if (config_.tail_channels > 0) tail_.Set(config_.tail_channels);
  Xbyak::Label next_tap, done;
  test(taps_left_, taps_left_);
  jz(done, T_NEAR);
  L(next_tap);
  EmitTap();
  add(tap_, sizeof(TapArgs));
  dec(taps_left_);
  jnz(next_tap, T_NEAR);
  L(done);
  EmitLaneSums(this, config_.unit, Spare(0));
  if (config_.bias) {
    mov(bias_, ptr[args_ + offsetof(TileArgs, bias)]);
    vbroadcastss(Spare(0), ptr[bias_]);
    vaddps(Vector(0), Vector(0), Spare(0));
  }
  epilogue_.ApplyPostOps(/*skip_sum=*/false);
  config_.dst_pixel_bytes == 4 ? epilogue_.Store() : StoreApart();
  vzeroupper();
  ret();
  epilogue_.EmitTables();
  if (config_.tail_channels > 0) tail_.EmitTable();
}

void FewOutputsGenerator::EmitTap() {
  Xbyak::Label next_block;
  mov(src_, ptr[tap_ + offsetof(TapArgs, src)]);
  mov(weights_, ptr[tap_ + offsetof(TapArgs, weights)]);
  if (config_.ic_blocks > 0) {
    mov(blocks_left_, config_.ic_blocks);
    L(next_block);
    EmitBlock(/*is_tail=*/false);
    add(src_, static_cast<int>(config_.src_block_bytes));
    add(weights_, static_cast<int>(config_.weights_block_bytes));
    dec(blocks_left_);
    jnz(next_block, T_NEAR);
  }
  if (config_.tail_channels > 0) EmitBlock(/*is_tail=*/true);
}

// What lies after the last channel of src may be anything. The next row of src is asked for in
// time: the phases along the height read this one again.
void FewOutputsGenerator::EmitBlock(bool is_tail) {
  const int bytes = config_.unit.bytes(), phases = config_.phases;
  const Xbyak::Xmm loaded = Spare(phases);
  for (int f = 0; f < phases; ++f) vmovups(Spare(f), ptr[weights_ + f * bytes]);
  for (int p = 0; p < config_.pixels; ++p) {
    tail_.Load(loaded, ptr[src_ + p * bytes], is_tail);
    if (config_.src_row_bytes < kFarthestRow)
      prefetcht1(ptr[src_ + static_cast<int>(p * bytes + config_.src_row_bytes)]);
    for (int f = 0; f < phases; ++f) vfmadd231ps(Vector(p * phases + f), Spare(f), loaded);
  }
}

// Vector 0 is stored four lanes at a time, which move to the lowest first.
void FewOutputsGenerator::StoreApart() {
  for (int p = 0; p < config_.pixels; ++p) {
    const int lane = p % 4;
    if (lane == 0 && p > 0) {
      const Xbyak::Xmm low(1);
      config_.unit.bytes() == 64 ? vextractf32x4(low, Xbyak::Zmm(0), static_cast<uint8_t>(p / 4))
                                 : vextractf128(low, Xbyak::Ymm(0), static_cast<uint8_t>(p / 4));
    }
    const Xbyak::Address to = dword[dst_ + static_cast<int>(p * config_.dst_pixel_bytes)];
    const Xbyak::Xmm quarter(p < 4 ? 0 : 1);
    lane == 0 ? vmovss(to, quarter) : vextractps(to, quarter, static_cast<uint8_t>(lane));
  }
}

}  // namespace tilewire::deconvolution
