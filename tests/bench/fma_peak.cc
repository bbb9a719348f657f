// SPDX-License-Identifier: Apache-2.0
#include "tests/bench/fma_peak.h"

#include <chrono>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"

namespace tilewire::bench {
namespace {

constexpr int kChains = 14;       // more than latency times FMAs a cycle
constexpr int kRounds = 400'000;  // some ten milliseconds

class FmaLoop final : public jit::Generator {
 public:
  explicit FmaLoop(bool wide) : Generator("bench/fma_peak"), wide_(wide) {}

 private:
  Xbyak::Xmm Vector(int i) const {
    if (wide_) return Xbyak::Zmm(i);
    return Xbyak::Ymm(i);
  }
  void Emit() override {
    Xbyak::Label loop;
    vzeroall();
    mov(eax, kRounds);
    L(loop);
    for (int i = 0; i < kChains; ++i) vfmadd231ps(Vector(i), Vector(14), Vector(15));
    dec(eax);
    jnz(loop, T_NEAR);
    vzeroupper();
    ret();
  }

  const bool wide_;
};

}  // namespace

double MeasureFmaPeak() {
  const bool wide = cpu::Supports(cpu::Isa::kAvx512);
  static const auto loop = jit::Compile<FmaLoop>(wide);
  if (!loop.ok()) return 0;
  const auto start = std::chrono::steady_clock::now();
  (*loop)->entry<void (*)()>()();
  const std::chrono::duration<double> time = std::chrono::steady_clock::now() - start;
  return kRounds * double{kChains} * 2 * (wide ? 16 : 8) / time.count() * 1e-9;
}

}  // namespace tilewire::bench
