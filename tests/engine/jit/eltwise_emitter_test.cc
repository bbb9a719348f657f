// SPDX-License-Identifier: Apache-2.0
//
// The emitted functions against their formulas over a sweep of all bit patterns of f32, both
// instruction sets.
#include "engine/jit/eltwise_emitter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <vector>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "gtest/gtest.h"
#include "tests/support/function_cases.h"

namespace tilewire::jit {
namespace {

using functions::Function;
using testing::AllowedUlps;
using testing::FunctionCase;
using testing::Ulp;

// values[0..15] = f(values[0..15]); of two vectors at a time, where the function takes several.
class SixteenValues final : public Generator {
 public:
  SixteenValues(cpu::Isa isa, const functions::Elementwise& op)
      : Generator("test/eltwise"),
        isa_(isa),
        emitter_(this, VectorUnit::Of(isa), op,
                 {.table = rax, .scratch = {5, 6, 7, 8, 9, 10, 11, 12, 13, 14}, .mask = k2}) {}

 private:
  void Emit() override {
    emitter_.LoadTable();
    if (isa_.Includes(cpu::Isa::kAvx512)) {
      vmovups(zmm1, ptr[rdi]);
      vmovaps(zmm0, zmm1);
      emitter_.Apply({0, 1});
      vmovups(ptr[rdi], zmm1);
    } else {
      vmovups(ymm0, ptr[rdi]);
      vmovups(ymm1, ptr[rdi + 32]);
      emitter_.Apply({0, 1});
      vmovups(ptr[rdi], ymm0);
      vmovups(ptr[rdi + 32], ymm1);
    }
    vzeroupper();
    ret();
    emitter_.EmitTable();
  }

  const cpu::Isa isa_;
  EltwiseEmitter emitter_;
};

void ExpectClose(const FunctionCase& one, float x, float actual) {
  // Generated squares and reciprocals do not flush their argument.
  if (one.op.function == Function::kPow && std::fpclassify(x) == FP_SUBNORMAL) return;
  const float expected = functions::EltwiseScalar(one.op, x);
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(actual)) << x << " gives " << actual;
  } else if (actual != expected) {
    const double error = std::fabs(static_cast<double>(actual) - expected) / Ulp(expected);
    ASSERT_LE(error, AllowedUlps(one, x)) << x << " gives " << actual << ", not " << expected;
  }
}

std::vector<FunctionCase> CasesWithCode() {
  std::vector<FunctionCase> cases;
  for (const FunctionCase& one : testing::kFunctionCases) {
    if (functions::HasCode(one.op.function)) cases.push_back(one);
  }
  return cases;
}

void SweepAll(cpu::Isa isa) {
  SCOPED_TRACE(cpu::IsaName(isa));
  for (const FunctionCase& one : CasesWithCode()) {
    SCOPED_TRACE(one.why);
    auto kernel = Compile<SixteenValues>(isa, one.op);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto run = (*kernel)->entry<void (*)(float*)>();
    constexpr uint32_t kStep = 30011;  // a prime: all exponents, ever-changing mantissas
    for (uint64_t first = 0; first <= UINT32_MAX; first += 16 * kStep) {
      float in[16], out[16];
      for (int i = 0; i < 16; ++i) {
        in[i] = out[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i * kStep));
      }
      run(out);
      for (int i = 0; i < 16; ++i) ExpectClose(one, in[i], out[i]);
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

void TrySpecialValues(cpu::Isa isa) {
  SCOPED_TRACE(cpu::IsaName(isa));
  using Limits = std::numeric_limits<float>;
  constexpr float kValues[16] = {
      0.0f,          -0.0f,          Limits::infinity(),   -Limits::infinity(),
      Limits::max(), -Limits::max(), Limits::min(),        -Limits::min(),
      88.72284f,     -103.97f,       Limits::denorm_min(), -87.33655f,
      0.625f,        -0.34657359f,   Limits::quiet_NaN(),  9.01f};
  for (const FunctionCase& one : CasesWithCode()) {
    SCOPED_TRACE(one.why);
    auto kernel = Compile<SixteenValues>(isa, one.op);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    float out[16];
    std::copy(std::begin(kValues), std::end(kValues), out);
    (*kernel)->entry<void (*)(float*)>()(out);
    for (int i = 0; i < 16; ++i) ExpectClose(one, kValues[i], out[i]);
  }
}

TEST(EltwiseEmitterTest, FollowsTheFormulaOverAllOfF32) {
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (cpu::Supports(isa)) SweepAll(isa);
  }
}

// Which lane of which vector a number is in, and what the others hold, decides nothing.
TEST(EltwiseEmitterTest, EveryLaneGivesTheSameBits) {
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (!cpu::Supports(isa)) continue;
    SCOPED_TRACE(cpu::IsaName(isa));
    for (const FunctionCase& one : CasesWithCode()) {
      SCOPED_TRACE(one.why);
      auto kernel = Compile<SixteenValues>(isa, one.op);
      ASSERT_TRUE(kernel.ok()) << kernel.status();
      for (float x : {0.3f, -0.3f, 1.7f, -1.7f, 5.5f, -5.5f}) {
        float alone[16] = {}, all[16];
        alone[0] = x;
        std::fill(std::begin(all), std::end(all), x);
        (*kernel)->entry<void (*)(float*)>()(alone);
        (*kernel)->entry<void (*)(float*)>()(all);
        for (float result : all)
          ASSERT_EQ(std::bit_cast<uint32_t>(result), std::bit_cast<uint32_t>(alone[0])) << x;
      }
    }
  }
}

TEST(EltwiseEmitterTest, TakesSpecialValues) {
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (cpu::Supports(isa)) TrySpecialValues(isa);
  }
}

}  // namespace
}  // namespace tilewire::jit
