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
  generator_->vminps(base, base, math_.Constant(std::numeric_limits<float>::max()));
  InverseRoot(root, base);
  InverseRoot(root_of_root, root);
  generator_->vmulps(inverse, root, root);
  generator_->vmulps(base, inverse, root_of_root);
}

// to (3/2 - of to^2 / 2), where `to` has 14 bits.
void Normalizer::InverseRoot(const Xbyak::Xmm& to, const Xbyak::Xmm& of) {
  const Xbyak::Xmm half = scratch_[2], rest = scratch_[3];
  generator_->vrsqrt14ps(to, of);
  generator_->vmulps(half, of, math_.Constant(0.5f));
  generator_->vmulps(half, half, to);
  math_.Load(rest, 1.5f);
  generator_->vfnmadd231ps(rest, half, to);
  generator_->vmulps(to, to, rest);
}

}  // namespace tilewire::lrn
