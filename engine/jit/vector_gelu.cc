// SPDX-License-Identifier: Apache-2.0
//
// The exact GELU. With x = |v| and h = erfc(x / sqrt(2)) / 2, gelu(v) is v h for v < 0, else
// v (1 - h). h = e^(-x^2 / 2) g(x), where the square is the sum of two floats, because the
// exponential multiplies its error, and g falls slowly from 1/2. g comes from
//
//   16 lanes   a polynomial of degree 5 for each quarter of each octave of x + 1, whose
//              coefficients are lanes of six vectors (error 7e-8 up to x = 7, 1e-7 above);
//   8 lanes    t P(t) with t = 1 / (1 + 0.3 x) (error 4e-9).
//
// Coefficients: minimax fits of the relative error, rounded to float.
#include <algorithm>
#include <array>

#include "engine/jit/vector_math.h"

namespace tilewire::jit {
namespace {

// From the highest power to the lowest, in the distance from the beginning of the quarter. The
// index of a quarter is the last two bits of the exponent of x + 1 and the first two of its
// fraction: x = 0 is at 12.
constexpr std::array<float, 16> kScaledErfc[] = {
    std::array<float, 16>{-0.00199032319f, -0.000830531586f, -0.000374708761f, -0.000181054653f,
                          -6.84949919e-05f, -2.19251069e-05f, -8.19773777e-06f, -3.46409661e-06f,
                          -1.14970715e-06f, -3.31460313e-07f, -1.17190837e-07f, -4.80652744e-08f,
                          -0.0199292358f, -0.0114004845f, -0.00670283241f, -0.00404405408f},
    std::array<float, 16>{0.00864753965f, 0.00388355111f, 0.00188402191f, 0.000977388001f,
                          0.000496634806f, 0.000176948364f, 7.32084809e-05f, 3.40151528e-05f,
                          1.57729537e-05f, 5.16787031e-06f, 2.05090873e-06f, 9.34071466e-07f,
                          0.0607138947f, 0.0362871364f, 0.0222927518f, 0.0140533121f},
    std::array<float, 16>{-0.0249331836f, -0.0124400053f, -0.00668111024f, -0.00382098532f,
                          -0.0022811715f, -0.000950885296f, -0.000453982939f, -0.000240268942f,
                          -0.000135881259f, -5.36356747e-05f, -2.50246267e-05f, -1.31372981e-05f,
                          -0.132753178f, -0.0841811448f, -0.0548464805f, -0.0366452262f},
    std::array<float, 16>{0.0620894507f, 0.0351802595f, 0.0213100351f, 0.0136470487f,
                          0.00914958399f, 0.00460408675f, 0.00259468798f, 0.0015902624f,
                          0.00103805983f, 0.000509847014f, 0.000285655784f, 0.000175385387f,
                          0.249986693f, 0.170079574f, 0.118772201f, 0.0849509761f},
    std::array<float, 16>{-0.137363225f, -0.0902709961f, -0.0627381653f, -0.0456138998f,
                          -0.0343998559f, -0.0212995615f, -0.0143457064f, -0.0102663767f,
                          -0.00768772932f, -0.00475314027f, -0.00321848271f, -0.00231988775f,
                          -0.398941994f, -0.295434088f, -0.224132776f, -0.17376788f},
    std::array<float, 16>{0.261578292f, 0.20578067f, 0.168101996f, 0.14133133f, 0.12151394f,
                          0.0944106355f, 0.0769193023f, 0.0647793114f, 0.0558934771f, 0.0437987894f,
                          0.03597489f, 0.0305094142f, 0.5f, 0.414032102f, 0.349618822f,
                          0.30023247f}};
constexpr int kFractionBits = 23, kQuarterBits = 2;
constexpr uint32_t kQuarterMask = ~0u << (kFractionBits - kQuarterBits);

}  // namespace

Xbyak::Address VectorMath::Lanes(const LaneTable& table) {
  auto found = std::find(lane_tables_.begin(), lane_tables_.end(), &table);
  if (found == lane_tables_.end()) found = lane_tables_.insert(found, &table);
  const auto index = static_cast<int>(found - lane_tables_.begin());
  return generator_->ptr[generator_->rip + lanes_label_ + index * static_cast<int>(sizeof(table))];
}

void VectorMath::ScaledErfcByTable(const Vector& p, const Vector& x, const Vector& s0,
                                   const Vector& s1) {
  const Vector &index = s0, &coefficient = s1;
  generator_->vaddps(x, x, Constant(1));
  generator_->vpsrld(index, x, kFractionBits - kQuarterBits);
  unit_.And(generator_, p, x, ConstantBits(kQuarterMask));
  generator_->vsubps(x, x, p);
  const auto take = [&](const Vector& to, int i) {
    generator_->vpermps(Xbyak::Zmm(to.getIdx()), Xbyak::Zmm(index.getIdx()), Lanes(kScaledErfc[i]));
  };
  take(p, 0);
  for (int i = 1; i < static_cast<int>(std::size(kScaledErfc)); ++i) {
    take(coefficient, i);
    generator_->vfmadd213ps(p, x, coefficient);
  }
}

void VectorMath::ScaledErfc(const Vector& p, const Vector& x, const Vector& s0, const Vector& s1) {
  if (unit_.bytes() == 64) return ScaledErfcByTable(p, x, s0, s1);
  Load(s0, 0.3f);
  generator_->vfmadd213ps(x, s0, Constant(1));
  Load(s0, 1);
  generator_->vdivps(x, s0, x);  // t
  Polynomial(p, x,
             {-2.06129737e-2f, 1.12376519e-1f, -2.28069127e-1f, 1.91583708e-1f, -7.92488828e-2f,
              9.60585847e-2f, 7.84253404e-2f, 1.10227369e-1f, 1.19572833e-1f, 1.19686633e-1f});
  generator_->vmulps(p, p, x);
}

void VectorMath::GeluErf(absl::Span<const Vector> vs, absl::Span<const Scratch5> scratch) {
  constexpr float kFarthest = 14.99f;  // erfc is 0 from there on
  // Scratch: h, free, power, original, low.
  const auto each = [&](auto stage) {
    for (size_t i = 0; i < vs.size(); ++i) stage(vs[i], scratch[i]);
  };
  each([this](const Vector& v, const Scratch5& s) {
    const Vector &original = s[3], &power = s[2], &low = s[4];
    generator_->vmovaps(original, v);
    Abs(v);
    AtMost(v, kFarthest, s[0]);
    generator_->vmulps(low, v, Constant(-0.5f));
    generator_->vmulps(power, low, v);
    generator_->vfmsub213ps(low, v, power);
  });
  each([this](const Vector&, const Scratch5& s) { ExpOfNearSum(s[2], s[4], s[0], s[1]); });
  each([this](const Vector& v, const Scratch5& s) { ScaledErfc(s[0], v, s[1], s[4]); });
  each([this](const Vector& v, const Scratch5& s) {
    const Vector &original = s[3], &power = s[2], &h = s[0];
    generator_->vmulps(h, h, power);
    Load(s[1], 1);
    generator_->vsubps(s[1], s[1], h);
    TakeWhereNegative(s[1], original, h);
    generator_->vmulps(v, s[1], original);
  });
}

}  // namespace tilewire::jit
