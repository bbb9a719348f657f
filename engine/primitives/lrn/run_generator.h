// SPDX-License-Identifier: Apache-2.0
//
// Generates the kernel of a run:
//
//   dst[i] = src[i] (k + scale * sum over taps t of src[i + t]^2)^-beta
#ifndef ENGINE_PRIMITIVES_LRN_RUN_GENERATOR_H_
#define ENGINE_PRIMITIVES_LRN_RUN_GENERATOR_H_

#include <cstdint>

#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/primitives/lrn/normalizer.h"

namespace tilewire::lrn {

struct RunArgs {
  const float* src;
  float* dst;
  const int64_t* taps;      // bytes from an element to its neighbours
  const int64_t* taps_end;  // at least one tap
  int64_t count;            // elements, >= 1
};

class RunGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const RunArgs*);
  RunGenerator(absl::string_view name, const NormalizerConfig& config)
      : Generator(name),
        unit_(config.unit),
        normalizer_(this, config, rax, kUnroll + 2),
        tail_(this, unit_, {.spare = r11, .opmask = k2, .vector = kUnroll + 1}) {}

 private:
  static constexpr int kUnroll = 4;

  void Emit() override;
  void EmitVectors(int count, bool masked);
  int vector_bytes() const { return unit_.bytes(); }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }

  // Registers. Arguments arrive in rdi; vectors 0 to 3 are sums.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, left_ = rcx;  // left_: elements not yet written
  const Xbyak::Reg64 tap_ = r8, taps_end_ = r9, at_ = r10;

  const VectorUnit unit_;
  Normalizer normalizer_;
  jit::TailMask tail_;
  const Xbyak::Xmm value_ = Vector(kUnroll);
};

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_RUN_GENERATOR_H_
