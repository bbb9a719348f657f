// SPDX-License-Identifier: Apache-2.0
//
// Emits src (k + scale * sum)^-beta on vector registers. A beta of 3/4, 1/2 or 1 takes square roots
// and a division, any other a power. Used while generating; thread-compatible.
#ifndef ENGINE_PRIMITIVES_LRN_NORMALIZER_H_
#define ENGINE_PRIMITIVES_LRN_NORMALIZER_H_

#include <limits>

#include "engine/jit/vector_math.h"
#include "engine/jit/vector_unit.h"

namespace tilewire::lrn {

struct NormalizerConfig {
  VectorUnit unit;
  float scale = 1, beta = 0.75f, k = 1;
};

// The passes of a gradient: blocked_backward.cc.
enum class GradientPass { kTerms, kGradient };

class Normalizer {
 public:
  // Overwrites the vector registers from `first_scratch` on, kScratch of them, and k1.
  static constexpr int kScratch = 5;
  Normalizer(Xbyak::CodeGenerator* generator, const NormalizerConfig& config,
             const Xbyak::Reg64& table, int first_scratch);

  void LoadTable() { math_.LoadTable(); }
  // sum = k + scale * sum
  void ToBase(const Xbyak::Xmm& sum);
  // base = src * base^-beta
  void Normalize(const Xbyak::Xmm& base, const Xbyak::Xmm& src);
  // sum = src * (k + scale * sum)^-beta
  void Apply(const Xbyak::Xmm& sum, const Xbyak::Xmm& src) {
    ToBase(sum);
    Normalize(sum, src);
  }
  // Whether Powers() takes the place of Normalize() and of a division.
  bool HasPowers() const {
    // Estimates may take numbers below it for 0.
    return config_.beta == 0.75f && config_.k >= std::numeric_limits<float>::min();
  }
  // base = base^-3/4 and inverse = 1 / base, from estimates of roots that a step doubles the bits
  // of, or trebles: within 8 * 2^-24 and 4 * 2^-24 of them. A base that overflowed counts as the
  // largest number, and NaN stays what it is.
  void Powers(const Xbyak::Xmm& base, const Xbyak::Xmm& inverse);
  void EmitTable() { math_.EmitTable(); }

 private:
  void InverseRoot(const Xbyak::Xmm& to, const Xbyak::Xmm& of);

  Xbyak::CodeGenerator* const generator_;
  const NormalizerConfig config_;
  jit::VectorMath math_;
  const jit::VectorMath::Scratch5 scratch_;
};

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_NORMALIZER_H_
