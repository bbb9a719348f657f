// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/lrn/normalizer.h"

namespace tilewire::lrn {

Normalizer::Normalizer(Xbyak::CodeGenerator* generator, const NormalizerConfig& config,
                       const Xbyak::Reg64& table, int first_scratch)
    : generator_(generator),
      config_(config),
      math_(generator, config.unit, table, Xbyak::Opmask(1)),
      scratch_{config.unit.Vector(first_scratch), config.unit.Vector(first_scratch + 1),
               config.unit.Vector(first_scratch + 2), config.unit.Vector(first_scratch + 3),
               config.unit.Vector(first_scratch + 4)} {}

void Normalizer::Apply(const Xbyak::Xmm& sum, const Xbyak::Xmm& src) {
  math_.Load(scratch_[0], config_.scale);
  generator_->vfmadd213ps(sum, scratch_[0], math_.Constant(config_.k));
  if (config_.beta == 0.75f) {
    generator_->vsqrtps(sum, sum);
    generator_->vsqrtps(scratch_[0], sum);
    generator_->vmulps(sum, sum, scratch_[0]);
    generator_->vdivps(sum, src, sum);
  } else if (config_.beta == 0.5f) {
    generator_->vsqrtps(sum, sum);
    generator_->vdivps(sum, src, sum);
  } else if (config_.beta == 1.0f) {
    generator_->vdivps(sum, src, sum);
  } else {
    math_.Pow(sum, -config_.beta, scratch_);
    generator_->vmulps(sum, sum, src);
  }
}

}  // namespace tilewire::lrn
