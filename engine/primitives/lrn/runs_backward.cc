// SPDX-License-Identifier: Apache-2.0
//
// The passes of blocked_backward.cc over runs of memory: parts of src, whose terms are all there
// before a gradient adds them up. They take the scratchpad, in the layout of src.
#include <cstddef>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/normalizer.h"
#include "engine/primitives/lrn/run_walk.h"

namespace tilewire::lrn {
namespace {

struct RunGradientArgs {
  const float *values, *other;  // src and diff_dst; the terms and src
  float *diff_src, *terms;
  const int64_t* taps;      // bytes from an element to its neighbours
  const int64_t* taps_end;  // after one tap at least
  jit::LoopCount count;     // elements
};

class RunGradientGenerator final : public jit::Generator {
 public:
  RunGradientGenerator(absl::string_view name, const NormalizerConfig& config, GradientPass pass)
      : Generator(name),
        unit_(config.unit),
        pass_(pass),
        factor_of_sums_(2 * config.beta * config.scale),
        normalizer_(this, config, rax, kUnroll),
        tail_(this, unit_, {.spare = r11, .opmask = k2, .vector = 15}) {}

  void Run(const RunGradientArgs& args) const { entry<void (*)(const RunGradientArgs*)>()(&args); }

 private:
  static constexpr int kUnroll = 4;

  void Emit() override {
    Preamble();
    mov(values_, ptr[rdi + offsetof(RunGradientArgs, values)]);
    mov(other_, ptr[rdi + offsetof(RunGradientArgs, other)]);
    mov(diff_src_, ptr[rdi + offsetof(RunGradientArgs, diff_src)]);
    mov(terms_, ptr[rdi + offsetof(RunGradientArgs, terms)]);
    mov(taps_end_, ptr[rdi + offsetof(RunGradientArgs, taps_end)]);
    mov(left_, ptr[rdi + offsetof(RunGradientArgs, count)]);
    unit_.Broadcast(this, factor_, factor_of_sums_, rax);
    normalizer_.LoadTable();
    for (int vectors : {kUnroll, 1}) {
      EmitWhileLeft(this, left_, vectors * unit_.lanes(), [&] {
        EmitVectors(vectors, /*masked=*/false);
        for (const Xbyak::Reg64& pointer : {values_, other_, diff_src_, terms_})
          add(pointer, vectors * unit_.bytes());
      });
    }
    EmitIfLeft(this, left_, [&] {
      tail_.Set(left_);
      EmitVectors(1, /*masked=*/true);
    });
    Postamble();
    normalizer_.EmitTable();
    tail_.EmitTable();
  }

  void EmitVectors(int vectors, bool masked) {
    EmitSums(vectors, masked);
    for (int v = 0; v < vectors; ++v)
      pass_ == GradientPass::kTerms ? EmitTerm(v, masked) : EmitGradient(v, masked);
  }

  // Sums of squares, or of terms.
  void EmitSums(int vectors, bool masked) {
    for (int v = 0; v < vectors; ++v) unit_.Zero(this, Sum(v));
    Xbyak::Label next;
    mov(tap_, ptr[rdi + offsetof(RunGradientArgs, taps)]);
    L(next);
    mov(at_, ptr[tap_]);
    add(at_, values_);
    for (int v = 0; v < vectors; ++v) {
      tail_.Load(value_, ptr[at_ + v * unit_.bytes()], masked);
      if (pass_ == GradientPass::kTerms) {
        vfmadd231ps(Sum(v), value_, value_);
      } else {
        vaddps(Sum(v), Sum(v), value_);
      }
    }
    add(tap_, 8);
    cmp(tap_, taps_end_);
    jne(next, T_NEAR);
  }

  void EmitTerm(int v, bool masked) {
    normalizer_.ToBase(Sum(v));
    Load(value_, values_, v, masked);
    Load(second_, other_, v, masked);
    if (unit_.has_masks() && normalizer_.HasPowers()) {
      normalizer_.Powers(Sum(v), base_);
      vmulps(Sum(v), Sum(v), second_);
      vmulps(base_, base_, value_);
    } else {
      vdivps(base_, value_, Sum(v));
      normalizer_.Normalize(Sum(v), second_);
    }
    Store(diff_src_, v, Sum(v), masked);
    vmulps(Sum(v), Sum(v), base_);
    Store(terms_, v, Sum(v), masked);
  }

  void EmitGradient(int v, bool masked) {
    vmulps(Sum(v), Sum(v), factor_);
    Load(second_, other_, v, masked);
    Load(value_, diff_src_, v, masked);
    vfnmadd231ps(value_, Sum(v), second_);
    Store(diff_src_, v, value_, masked);
  }

  void Load(const Xbyak::Xmm& to, const Xbyak::Reg64& from, int v, bool masked) {
    tail_.Load(to, ptr[from + v * unit_.bytes()], masked);
  }
  void Store(const Xbyak::Reg64& to, int v, const Xbyak::Xmm& from, bool masked) {
    tail_.Store(ptr[to + v * unit_.bytes()], from, masked);
  }
  Xbyak::Xmm Sum(int v) const { return unit_.Vector(v); }

  // Registers. Arguments arrive in rdi; vectors 0 to 3 are sums, 4 to 8 the normalizer's.
  const Xbyak::Reg64 values_ = rsi, other_ = rdx, diff_src_ = rbx, terms_ = rbp, left_ = rcx;
  const Xbyak::Reg64 tap_ = r8, taps_end_ = r9, at_ = r10;
  const VectorUnit unit_;
  const GradientPass pass_;
  const float factor_of_sums_;
  Normalizer normalizer_;
  jit::TailMask tail_;
  const Xbyak::Xmm value_ = unit_.Vector(9), base_ = unit_.Vector(10);
  const Xbyak::Xmm second_ = unit_.Vector(11), factor_ = unit_.Vector(12);
};

struct RunsGradient {
  void Run(const DrivenRun& run) const {
    const auto* const src = run.First<const float>(kArgSrc);
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    auto* const diff_src = run.First<float>(kArgDiffSrc);
    auto* const terms = reinterpret_cast<float*>(run.scratchpad);
    const auto pass = [&](const RunGradientGenerator& code, const float* values,
                          const float* other) {
      return [&code, values, other, diff_src, terms](int64_t at, const RunWalk::Taps& taps,
                                                     int64_t count) {
        TILEWIRE_CHECK(!taps.empty(), "an element is a tap of its own");
        code.Run({values + at, other + at, diff_src + at, terms + at, taps.data(),
                  taps.data() + taps.size(), count});
      };
    };
    const auto terms_pass = pass(*terms_code, src, diff_dst);
    const auto gradient_pass = pass(*gradient_code, terms, src);
    walk.ForEach(run.team, {terms_pass, gradient_pass});
    ZeroPadding(run.primitive.Desc(kArgDiffSrc), run.args.Find(kArgDiffSrc));
  }
  int64_t code_bytes() const {
    return static_cast<int64_t>(terms_code->code_bytes() + gradient_code->code_bytes());
  }

  RunWalk walk;
  std::unique_ptr<const RunGradientGenerator> terms_code, gradient_code;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveRunsBackward(const Request<LrnDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveReferenceBackward(request));
  if (resolved.diff_src != resolved.src || resolved.diff_dst != resolved.src)
    return Unimplemented("layouts of the tensors differ");
  ABSL_RETURN_IF_ERROR(RequirePositiveBases(resolved));
  ABSL_RETURN_IF_ERROR(RunWalk::Require(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRunsBackward(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const NormalizerConfig config = {VectorUnit::Of(request.facts.isa), ScaleOf(desc), desc.beta,
                                   desc.k};
  const auto compile = [&](GradientPass pass) {
    return jit::Compile<RunGradientGenerator>(request.facts.name, config, pass);
  };
  ABSL_ASSIGN_OR_RETURN(auto terms_code, compile(GradientPass::kTerms));
  ABSL_ASSIGN_OR_RETURN(auto gradient_code, compile(GradientPass::kGradient));
  PrimitiveInfo info = BackwardInfoOf(request);
  info.scratchpad_bytes = desc.src.SizeBytes();
  return MakeDriven(std::move(info),
                    RunsGradient{RunWalk(desc), std::move(terms_code), std::move(gradient_code)});
}

}  // namespace tilewire::lrn
