// SPDX-License-Identifier: Apache-2.0
//
// The emitted functions against functions::EltwiseScalar over a sweep of all bit patterns of f32, both
// instruction sets.
#include "engine/jit/eltwise_emitter.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/cpu/isa.h"
#include "engine/jit/generator.h"
#include "gtest/gtest.h"

namespace tilewire::jit {
namespace {

// values[0..15] = f(values[0..15]); of two vectors at a time, where the function takes several.
class SixteenValues final : public Generator {
 public:
  SixteenValues(cpu::Isa isa, const functions::EltwiseOp& op)
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

constexpr functions::EltwiseOp kOps[] = {
    {functions::EltwiseAlgorithm::kRelu, 0},
    {functions::EltwiseAlgorithm::kRelu, 0.1f},
    {functions::EltwiseAlgorithm::kTanh},
    {functions::EltwiseAlgorithm::kElu, 0.7f},
    {functions::EltwiseAlgorithm::kSquare},
    {functions::EltwiseAlgorithm::kAbs},
    {functions::EltwiseAlgorithm::kSqrt},
    {functions::EltwiseAlgorithm::kLinear, 0.3f, -2},
    {functions::EltwiseAlgorithm::kBoundedRelu, 6},
    {functions::EltwiseAlgorithm::kSoftRelu},
    {functions::EltwiseAlgorithm::kLogistic},
    {functions::EltwiseAlgorithm::kExp},
    {functions::EltwiseAlgorithm::kGelu},
    {functions::EltwiseAlgorithm::kClip, -1, 2},
    {functions::EltwiseAlgorithm::kSwish, 1},
    {functions::EltwiseAlgorithm::kHardSigmoid, 0.2f, 0.5f},
    {functions::EltwiseAlgorithm::kHardSwish, 1.0f / 6, 0.5f},
    {functions::EltwiseAlgorithm::kGeluErf},
    {functions::EltwiseAlgorithm::kMish},
    {functions::EltwiseAlgorithm::kLog},
    {functions::EltwiseAlgorithm::kPow, 1, 0.5f},
    {functions::EltwiseAlgorithm::kPow, 1, -0.75f},
    {functions::EltwiseAlgorithm::kPow, 2, 3},
    {functions::EltwiseAlgorithm::kPow, 0.5f, 2},
    {functions::EltwiseAlgorithm::kPow, 1, -1},
    {functions::EltwiseAlgorithm::kPow, 1, 17.3f},
    {functions::EltwiseAlgorithm::kPow, 1, -1e30f},
    {functions::EltwiseAlgorithm::kRound},
    {functions::EltwiseAlgorithm::kFloor},
    {functions::EltwiseAlgorithm::kCeil},
};

// Units in the last place of the result that `op` may be off at x.
double AllowedUlps(const functions::EltwiseOp& op, float x) {
  switch (op.algorithm) {
    case functions::EltwiseAlgorithm::kTanh:
    case functions::EltwiseAlgorithm::kElu:
    case functions::EltwiseAlgorithm::kSoftRelu:
    case functions::EltwiseAlgorithm::kLogistic:
    case functions::EltwiseAlgorithm::kExp:
      return 3;
    // e^u is off by |u| units for each half unit that u = x (c + d x^2) is off: two constants, the
    // square, the sum and the product make 5. t = e^-|u| below the normal range is off by half its
    // own unit, times x.
    case functions::EltwiseAlgorithm::kGelu: {
      const double u = 1.6 * std::fabs(x) * (1 + 0.044715 * x * x);
      return 4 + 2.5 * std::fmin(u, 105) + (u > 85 ? std::fabs(x) : 0);
    }
    case functions::EltwiseAlgorithm::kLog:
    case functions::EltwiseAlgorithm::kPow:
      return 3;
    // Below -13 e^(-x^2/2) is denormal and off by half its unit, times x.
    case functions::EltwiseAlgorithm::kGeluErf:
      return 6 + (x < -13 ? std::fabs(x) : 0);
    case functions::EltwiseAlgorithm::kMish:
    case functions::EltwiseAlgorithm::kSwish:
      return 4 + (std::fabs(x) > 85 ? std::fabs(x) : 0);
    default:
      return 0;
  }
}

// One unit in the last place at `value`, denormals included.
double Ulp(float value) {
  if (std::isinf(value)) value = std::numeric_limits<float>::max();
  return std::ldexp(1.0, value == 0 ? -149 : std::max(-149, std::ilogb(value) - 23));
}

void ExpectClose(const functions::EltwiseOp& op, float x, float actual) {
  // Generated squares and reciprocals do not flush their argument.
  if (op.algorithm == functions::EltwiseAlgorithm::kPow && std::fpclassify(x) == FP_SUBNORMAL)
    return;
  const float expected = functions::EltwiseScalar(op, x);
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(actual)) << x << " gives " << actual;
  } else if (actual != expected) {
    const double error = std::fabs(static_cast<double>(actual) - expected) / Ulp(expected);
    ASSERT_LE(error, AllowedUlps(op, x)) << x << " gives " << actual << ", not " << expected;
  }
}

void SweepAll(cpu::Isa isa) {
  SCOPED_TRACE(cpu::IsaName(isa));
  for (const functions::EltwiseOp& op : kOps) {
    SCOPED_TRACE(functions::EltwiseAlgorithmName(op.algorithm));
    auto kernel = Compile<SixteenValues>(isa, op);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    const auto run = (*kernel)->entry<void (*)(float*)>();
    constexpr uint32_t kStep = 30011;  // a prime: all exponents, ever other mantissas
    for (uint64_t first = 0; first <= UINT32_MAX; first += 16 * kStep) {
      float in[16], out[16];
      for (int i = 0; i < 16; ++i) {
        in[i] = out[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i * kStep));
      }
      run(out);
      for (int i = 0; i < 16; ++i) ExpectClose(op, in[i], out[i]);
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
  for (const functions::EltwiseOp& op : kOps) {
    SCOPED_TRACE(functions::EltwiseAlgorithmName(op.algorithm));
    auto kernel = Compile<SixteenValues>(isa, op);
    ASSERT_TRUE(kernel.ok()) << kernel.status();
    float out[16];
    std::copy(std::begin(kValues), std::end(kValues), out);
    (*kernel)->entry<void (*)(float*)>()(out);
    for (int i = 0; i < 16; ++i) ExpectClose(op, kValues[i], out[i]);
    EXPECT_TRUE(std::isnan(out[14])) << "NaN gives NaN";
  }
}

TEST(EltwiseEmitterTest, FollowsTheFormulaOverAllOfF32) {
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (cpu::Supports(isa)) SweepAll(isa);
  }
}

TEST(EltwiseEmitterTest, TakesSpecialValues) {
  for (cpu::Isa isa : {cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    if (cpu::Supports(isa)) TrySpecialValues(isa);
  }
}

}  // namespace
}  // namespace tilewire::jit
