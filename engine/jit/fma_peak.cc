// SPDX-License-Identifier: Apache-2.0
#include "engine/jit/fma_peak.h"

#include <time.h>

#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::jit {
namespace {

constexpr int kChains = 14;  // more than an FMA's latency times the FMAs per cycle
constexpr int kRounds = 400'000;

class FmaLoop final : public Generator {
 public:
  explicit FmaLoop(const VectorUnit& unit) : Generator("jit/fma_peak"), unit_(unit) {}

 private:
  void Emit() override {
    Xbyak::Label loop;
    vzeroall();
    mov(eax, kRounds);
    L(loop);
    for (int i = 0; i < kChains; ++i) {
      vfmadd231ps(unit_.Vector(i), unit_.Vector(14), unit_.Vector(15));
    }
    dec(eax);
    jnz(loop, T_NEAR);
    vzeroupper();
    ret();
  }

  const VectorUnit unit_;
};

}  // namespace

double MeasureFmaPeak(cpu::Isa isa) {
  if (!isa.Includes(cpu::Isa::kAvx2) || !cpu::Supports(isa)) return 0;
  const VectorUnit unit = VectorUnit::Of(isa);
  const auto loop = Compile<FmaLoop>(unit);
  if (!loop.ok()) return 0;
  timespec start, end;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &start);
  (*loop)->entry<void (*)()>()();
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
  const double seconds = end.tv_sec - start.tv_sec + 1e-9 * (end.tv_nsec - start.tv_nsec);
  return kRounds * double{kChains} * 2 * unit.lanes() / seconds * 1e-9;
}

}  // namespace tilewire::jit
