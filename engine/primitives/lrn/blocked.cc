// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/block_neighbours.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/normalizer.h"
#include "engine/primitives/single_source.h"

namespace tilewire::lrn {
namespace {

constexpr int64_t kBlockPixelsPerTask = 256;

struct BlockArgs {
  const float *before, *src, *after;            // of one pixel
  int64_t before_step_bytes, after_step_bytes;  // to the next pixel: a vector, or 0 for kZeroBlock
  float* dst;
  jit::LoopCount pixels;
};

class BlockGenerator final : public jit::Generator {
 public:
  BlockGenerator(absl::string_view name, const NormalizerConfig& config, int reach)
      : Generator(name),
        unit_(config.unit),
        neighbours_(this, unit_, reach, 1),
        normalizer_(this, config, rax, 1 + NeighbourSums::kVectors) {}

 private:
  int vector_bytes() const { return unit_.bytes(); }

  void Emit() override {
    mov(src_, ptr[rdi + offsetof(BlockArgs, src)]);
    mov(before_, ptr[rdi + offsetof(BlockArgs, before)]);
    mov(after_, ptr[rdi + offsetof(BlockArgs, after)]);
    mov(dst_, ptr[rdi + offsetof(BlockArgs, dst)]);
    mov(pixels_, ptr[rdi + offsetof(BlockArgs, pixels)]);
    normalizer_.LoadTable();
    Xbyak::Label pixel;
    L(pixel);
    EmitPixel();
    add(before_, ptr[rdi + offsetof(BlockArgs, before_step_bytes)]);
    add(after_, ptr[rdi + offsetof(BlockArgs, after_step_bytes)]);
    add(src_, vector_bytes());
    add(dst_, vector_bytes());
    dec(pixels_);
    jnz(pixel, T_NEAR);
    vzeroupper();
    ret();
    normalizer_.EmitTable();
  }

  void EmitPixel() {
    vmovups(value_, ptr[src_]);
    vmulps(neighbours_.middle(), value_, value_);
    EmitSquares(neighbours_.low(), before_);
    EmitSquares(neighbours_.high(), after_);
    neighbours_.Emit();
    normalizer_.Apply(neighbours_.sum(), value_);
    vmovups(ptr[dst_], neighbours_.sum());
  }

  void EmitSquares(const Xbyak::Xmm& to, const Xbyak::Reg64& from) {
    vmovups(to, ptr[from]);
    vmulps(to, to, to);
  }

  const Xbyak::Reg64 src_ = rsi, before_ = r8, after_ = r9, dst_ = rdx;
  const Xbyak::Reg64 pixels_ = rcx;  // not yet written
  const VectorUnit unit_;
  NeighbourSums neighbours_;
  Normalizer normalizer_;
  const Xbyak::Xmm value_ = unit_.Vector(0);
};

// Immutable.
class Blocked final : public SingleSource<float> {
 public:
  Blocked(PrimitiveInfo primitive_info, const LrnDesc& desc,
          std::unique_ptr<const BlockGenerator> generator)
      : SingleSource(std::move(primitive_info), /*spoils_padding=*/SpoilsPadding(desc)),
        desc_(desc),
        lanes_(desc.src.BlockSize(1)),
        blocks_(desc.src.padded_dims()[1] / lanes_),
        generator_(std::move(generator)) {
    for (int d = 2; d < desc.src.rank(); ++d) pixels_ *= desc.src.dim(d);
  }

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    const int64_t pieces = DivUp(pixels_, kBlockPixelsPerTask);
    team.ParallelFor(desc_.src.dim(0) * blocks_ * pieces, [&](int64_t task) {
      const int64_t first = task % pieces * kBlockPixelsPerTask;
      const int64_t block = task / pieces % blocks_, n = task / pieces / blocks_;
      const float* from =
          src + n * desc_.src.stride(0) + block * desc_.src.stride(1) + first * lanes_;
      float* to = dst + n * desc_.dst.stride(0) + block * desc_.dst.stride(1) + first * lanes_;
      RunBlock(from, to, block, std::min(kBlockPixelsPerTask, pixels_ - first));
    });
  }

  void RunBlock(const float* src, float* dst, int64_t block, int64_t pixels) const {
    const int64_t next = desc_.src.stride(1);
    const int64_t step_bytes = lanes_ * static_cast<int64_t>(sizeof(float));
    const bool first = block == 0, last = block + 1 == blocks_;
    BlockArgs args;
    args.src = src;
    args.dst = dst;
    args.pixels = pixels;
    args.before = first ? kZeroBlock : src - next;
    args.before_step_bytes = first ? 0 : step_bytes;
    args.after = last ? kZeroBlock : src + next;
    args.after_step_bytes = last ? 0 : step_bytes;
    generator_->entry<void (*)(const BlockArgs*)>()(&args);
  }

  const LrnDesc desc_;
  const int64_t lanes_, blocks_;
  int64_t pixels_ = 1;
  const std::unique_ptr<const BlockGenerator> generator_;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveBlocked(const Request<LrnDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveDefaults(request.desc, request.attributes));
  ABSL_RETURN_IF_ERROR(
      RequireBlocked(resolved, {&resolved.src, &resolved.dst}, VectorUnit::Of(request.facts.isa)));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlocked(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const NormalizerConfig config = {VectorUnit::Of(request.facts.isa), ScaleOf(desc), desc.beta,
                                   desc.k};
  ABSL_ASSIGN_OR_RETURN(
      auto generator,
      jit::Compile<BlockGenerator>(request.facts.name, config, static_cast<int>(ReachOf(desc))));
  return std::make_unique<Blocked>(WithCode(InfoOf(request), *generator), desc,
                                   std::move(generator));
}

}  // namespace tilewire::lrn
