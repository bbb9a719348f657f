// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/normalizer.h"
#include "engine/primitives/lrn/run_walk.h"
#include "engine/primitives/single_source.h"

namespace tilewire::lrn {
namespace {

// The kernel of a run:
//
//   dst[i] = src[i] (k + scale * sum over taps t of src[i + t]^2)^-beta
struct RunArgs {
  const float* src;
  float* dst;
  const int64_t* taps;      // bytes from an element to its neighbours
  const int64_t* taps_end;  // after one tap at least
  jit::LoopCount count;     // elements
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

  void Emit() override {
    mov(src_, ptr[rdi + offsetof(RunArgs, src)]);
    mov(dst_, ptr[rdi + offsetof(RunArgs, dst)]);
    mov(taps_end_, ptr[rdi + offsetof(RunArgs, taps_end)]);
    mov(left_, ptr[rdi + offsetof(RunArgs, count)]);
    const int lanes = unit_.lanes();
    normalizer_.LoadTable();
    for (int vectors : {kUnroll, 1}) {
      EmitWhileLeft(this, left_, vectors * lanes, [&] {
        EmitVectors(vectors, /*masked=*/false);
        add(src_, vectors * vector_bytes());
        add(dst_, vectors * vector_bytes());
      });
    }
    EmitIfLeft(this, left_, [&] {
      tail_.Set(left_);
      EmitVectors(1, /*masked=*/true);
    });
    vzeroupper();
    ret();
    normalizer_.EmitTable();
    tail_.EmitTable();
  }

  void EmitVectors(int count, bool masked) {
    for (int i = 0; i < count; ++i) vxorps(Vector(i), Vector(i), Vector(i));
    Xbyak::Label next;
    mov(tap_, ptr[rdi + offsetof(RunArgs, taps)]);
    L(next);
    mov(at_, ptr[tap_]);
    add(at_, src_);
    for (int i = 0; i < count; ++i) {
      tail_.Load(value_, ptr[at_ + i * vector_bytes()], masked);
      vfmadd231ps(Vector(i), value_, value_);
    }
    add(tap_, 8);
    cmp(tap_, taps_end_);
    jne(next, T_NEAR);
    for (int i = 0; i < count; ++i) {
      tail_.Load(value_, ptr[src_ + i * vector_bytes()], masked);
      normalizer_.Apply(Vector(i), value_);
      tail_.Store(ptr[dst_ + i * vector_bytes()], Vector(i), masked);
    }
  }

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

// Immutable.
class Runs final : public SingleSource<float> {
 public:
  Runs(PrimitiveInfo primitive_info, const LrnDesc& desc,
       std::unique_ptr<const RunGenerator> generator)
      : SingleSource(std::move(primitive_info), /*spoils_padding=*/SpoilsPadding(desc)),
        walk_(desc),
        generator_(std::move(generator)) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    walk_.ForEach(team, [&](int64_t offset, const RunWalk::Taps& taps, int64_t count) {
      TILEWIRE_CHECK(!taps.empty(), "an element is a tap of its own");
      const RunArgs args = {src + offset, dst + offset, taps.data(), taps.data() + taps.size(),
                            count};
      generator_->entry<RunGenerator::Function>()(&args);
    });
  }

  const RunWalk walk_;
  const std::unique_ptr<const RunGenerator> generator_;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveRuns(const Request<LrnDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveDefaults(request.desc, request.attributes));
  if (resolved.dst != resolved.src) return Unimplemented("layouts of src and dst differ");
  ABSL_RETURN_IF_ERROR(RunWalk::Require(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRuns(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const NormalizerConfig config = {VectorUnit::Of(request.facts.isa), ScaleOf(desc), desc.beta,
                                   desc.k};
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RunGenerator>(request.facts.name, config));
  return std::make_unique<Runs>(WithCode(InfoOf(request), *generator), desc, std::move(generator));
}

}  // namespace tilewire::lrn
