// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/normalizer.h"

#include <limits>

namespace tilewire::lrn {

Normalizer::Normalizer(Xbyak::CodeGenerator* generator, const NormalizerConfig& config,
                       const Xbyak::Reg64& table, int first_scratch)
    : generator_(generator),
      config_(config),
      math_(generator, config.unit, table, Xbyak::Opmask(1)),
      scratch_{config.unit.Vector(first_scratch), config.unit.Vector(first_scratch + 1),
               config.unit.Vector(first_scratch + 2), config.unit.Vector(first_scratch + 3),
               config.unit.Vector(first_scratch + 4)} {}

void Normalizer::ToBase(const Xbyak::Xmm& sum) {
  math_.Load(scratch_[0], config_.scale);
  generator_->vfmadd213ps(sum, scratch_[0], math_.Constant(config_.k));
}

void Normalizer::Normalize(const Xbyak::Xmm& base, const Xbyak::Xmm& src) {
  if (config_.beta == 0.75f) {
    generator_->vsqrtps(base, base);
    generator_->vsqrtps(scratch_[0], base);
    generator_->vmulps(base, base, scratch_[0]);
    generator_->vdivps(base, src, base);
  } else if (config_.beta == 0.5f) {
    generator_->vsqrtps(base, base);
    generator_->vdivps(base, src, base);
  } else if (config_.beta == 1.0f) {
    generator_->vdivps(base, src, base);
  } else {
    math_.Pow(base, -config_.beta, scratch_);
    generator_->vmulps(base, base, src);
  }
}

void Normalizer::Powers(const Xbyak::Xmm& base, const Xbyak::Xmm& inverse) {
  const Xbyak::Xmm root = scratch_[0], root_of_root = scratch_[1];
  math_.AtMost(base, std::numeric_limits<float>::max(), root);  // NaN stays one
  InverseRoot(root, base);
  InverseRoot(root_of_root, root);
  generator_->vmulps(inverse, root, root);
  generator_->vmulps(base, inverse, root_of_root);
}

// With a rest r = 1 - of to^2 the root is to (1 - r)^-1/2 = to (1 + r / 2 + 3 r^2 / 8 + ...). The
// estimate with masks has 14 bits, so that r^2 is small enough to be left out; the other has an
// error of 1.5 * 2^-12.
void Normalizer::InverseRoot(const Xbyak::Xmm& to, const Xbyak::Xmm& of) {
  const Xbyak::Xmm rest = scratch_[2], more = scratch_[3];
  const bool masks = config_.unit.has_masks();
  masks ? generator_->vrsqrt14ps(to, of) : generator_->vrsqrtps(to, of);
  generator_->vmulps(rest, of, to);
  generator_->vfnmadd213ps(rest, to, math_.Constant(1));
  if (masks) {
    generator_->vmulps(rest, rest, math_.Constant(0.5f));
  } else {
    math_.Load(more, 0.375f);
    generator_->vfmadd213ps(more, rest, math_.Constant(0.5f));
    generator_->vmulps(rest, rest, more);
  }
  generator_->vfmadd231ps(to, to, rest);
}

}  // namespace tilewire::lrn
