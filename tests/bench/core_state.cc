// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/core_state.h"

#include <array>
#include <cstdint>
#include <utility>

#include "engine/cpu/isa.h"
#include "engine/kernels/tiles/matrix_tile.h"
#include "tests/bench/stopwatch.h"

namespace tilewire::bench {
namespace {

constexpr int kTiles = 8, kTileBytes = 1024, kRowBytes = 64;
constexpr int kRounds = 400, kProducts = 4;  // products of a round

// The operand of ldtilecfg: palette 1, and the bytes of a row and the rows of each tile.
struct alignas(kRowBytes) WholeTiles {
  std::array<uint8_t, 16> palette{1};
  std::array<uint16_t, 16> row_bytes{64, 64, 64, 64, 64, 64, 64, 64};
  std::array<uint8_t, 16> rows{16, 16, 16, 16, 16, 16, 16, 16};
};
static_assert(sizeof(WholeTiles) == kRowBytes);
constexpr WholeTiles kWholeTiles;

// Sums in tiles 0 to 3, two pairs of factors in 4 to 7, loaded again for each round. The tiles have
// to be whole.
class ProductBurst final : public jit::Generator {
 public:
  ProductBurst() : Generator("bench/tile_products") {}

 private:
  void Emit() override {
    Xbyak::Label loop, factors;
    lea(rdx, ptr[rip + factors]);
    mov(ecx, kRowBytes);
    mov(eax, kRounds);
    L(loop);
    for (int tile = 4; tile < kTiles; ++tile)
      tileloadd(Xbyak::Tmm(tile), ptr[rdx + rcx + (tile - 4) * kTileBytes]);
    for (int i = 0; i < kProducts; ++i)
      tdpbf16ps(Xbyak::Tmm(i), Xbyak::Tmm(4 + i / 2), Xbyak::Tmm(6 + i % 2));
    dec(eax);
    jnz(loop, T_NEAR);
    ret();
    align(kRowBytes);
    L(factors);
    for (int i = 0; i < 4 * kTileBytes / 8; ++i) dq(0);
  }
};

// Multiplications that wait for each other: three cycles each, whatever the clock.
class CycleCount final : public jit::Generator {
 public:
  static constexpr int kCycles = 60'000;

  CycleCount() : Generator("bench/cycles") {}

 private:
  void Emit() override {
    constexpr int kLatency = 3, kUnrolled = 10;
    Xbyak::Label loop;
    mov(edx, 3);
    mov(eax, kCycles / kLatency / kUnrolled);
    L(loop);
    for (int i = 0; i < kUnrolled; ++i) imul(rdx, rdx);
    dec(eax);
    jnz(loop, T_NEAR);
    ret();
  }
};

template <typename Code>
std::unique_ptr<const jit::Generator> Make() {
  auto code = jit::Compile<Code>();
  return code.ok() ? *std::move(code) : nullptr;
}

double TimeOf(const jit::Generator& code) {
  return Seconds([&] { code.entry<void (*)()>()(); });
}

}  // namespace

CoreProbe::CoreProbe() {
  if (!cpu::Supports(cpu::Isa::kAmx)) return;
  products_ = Make<ProductBurst>();
  cycles_ = Make<CycleCount>();
}

CoreState CoreProbe::Now() const {
  if (products_ == nullptr || cycles_ == nullptr) return CoreState::kUnknown;
  const double cycle = TimeOf(*cycles_) / CycleCount::kCycles;
  asm volatile("ldtilecfg (%0)" ::"r"(&kWholeTiles) : "memory");
  const double cycles = TimeOf(*products_) / cycle / (kRounds * kProducts);
  ReleaseMatrixTiles();
  if (cycles <= kQuietCycles) return CoreState::kQuiet;
  return cycles >= kBusyCycles ? CoreState::kBusy : CoreState::kBetween;
}

TimesByState WithoutBetween(TimesByState times) {
  if (times.size() > 1) times.erase(CoreState::kBetween);
  return times;
}

const char* CoreStateName(CoreState state) {
  static constexpr const char* kNames[] = {"", "quiet", "busy", "between"};
  return kNames[static_cast<int>(state)];
}

}  // namespace tilewire::bench
