// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/fma_peak.h"

#include <time.h>

#include "engine/jit/generator.h"

namespace tilewire::jit {
namespace {

constexpr int kChains = 14;  // more than latency times FMAs a cycle
constexpr int kRounds = 400'000;

class FmaLoop final : public Generator {
 public:
  explicit FmaLoop(bool wide) : Generator("jit/fma_peak"), wide_(wide) {}

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

double MeasureFmaPeak(cpu::Isa isa) {
  if (!isa.Includes(cpu::Isa::kAvx2) || !cpu::Supports(isa)) return 0;
  const bool wide = isa.Includes(cpu::Isa::kAvx512);
  const auto loop = Compile<FmaLoop>(wide);
  if (!loop.ok()) return 0;
  timespec start, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  (*loop)->entry<void (*)()>()();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double seconds = end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec);
  return kRounds * double{kChains} * 2 * (wide ? 16 : 8) / seconds * 1e-9;
}

}  // namespace tilewire::jit
