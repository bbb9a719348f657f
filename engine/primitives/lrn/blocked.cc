// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/normalizer.h"
#include "engine/primitives/single_source.h"

namespace tilewire::lrn {
namespace {

constexpr int64_t kBlockPixelsPerTask = 256;

// Stand for the block before the first and after the last, at every pixel.
alignas(64) constexpr float kZeros[16] = {};

struct BlockArgs {
  const float *before, *src, *after;            // of one pixel
  int64_t before_step_bytes, after_step_bytes;  // to the next pixel: a vector, or 0 for kZeros
  float* dst;
  jit::LoopCount pixels;
};

class BlockGenerator final : public jit::Generator {
 public:
  BlockGenerator(absl::string_view name, const NormalizerConfig& config, int reach)
      : Generator(name), unit_(config.unit), reach_(reach), normalizer_(this, config, rax, 8) {}

 private:
  int vector_bytes() const { return unit_.bytes(); }
  Xbyak::Xmm Vector(int index) const { return unit_.Vector(index); }
  // valignd shifts whole vectors by lanes; without it halves have to be shifted on their own.
  bool ShiftsVectors() const { return unit_.has_masks(); }

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
    vmovups(low_, ptr[before_]);
    vmovups(high_, ptr[after_]);
    vmulps(middle_, value_, value_);
    vmulps(low_, low_, low_);
    vmulps(high_, high_, high_);
    vmovaps(sum_, middle_);
    if (!ShiftsVectors()) {
      // The high half of one and the low half of the next.
      vperm2f128(Ymm(low_middle_), Ymm(low_), Ymm(middle_), 0x21);
      vperm2f128(Ymm(middle_high_), Ymm(middle_), Ymm(high_), 0x21);
    }
    for (int shift = 1; shift <= reach_; ++shift) EmitNeighbours(shift);
    normalizer_.Apply(sum_, value_);
    vmovups(ptr[dst_], sum_);
  }

  // The squares `shift` channels before, and those as far after.
  void EmitNeighbours(int shift) {
    if (ShiftsVectors()) {
      const int lanes = unit_.lanes();
      valignd(shifted_, middle_, low_, (lanes - shift) % lanes);
      vaddps(sum_, sum_, shift == lanes ? low_ : shifted_);
      valignd(shifted_, high_, middle_, shift % lanes);
      vaddps(sum_, sum_, shift == lanes ? high_ : shifted_);
      return;
    }
    AddShifted(shift, low_, low_middle_, middle_);
    AddShifted(8 - shift, middle_, middle_high_, high_);
  }

  // Adds the eight values `shift` (0 to 8) left of `right`; `between` is the middle of left, right.
  void AddShifted(int shift, const Xbyak::Xmm& left, const Xbyak::Xmm& between,
                  const Xbyak::Xmm& right) {
    if (shift % 4 == 0) {
      vaddps(sum_, sum_, shift == 0 ? right : shift == 4 ? between : left);
      return;
    }
    if (shift < 4) {
      vpalignr(shifted_, right, between, 16 - 4 * shift);
    } else {
      vpalignr(shifted_, between, left, 32 - 4 * shift);
    }
    vaddps(sum_, sum_, shifted_);
  }

  static Xbyak::Ymm Ymm(const Xbyak::Xmm& vector) { return Xbyak::Ymm(vector.getIdx()); }

  const Xbyak::Reg64 src_ = rsi, before_ = r8, after_ = r9, dst_ = rdx;
  const Xbyak::Reg64 pixels_ = rcx;  // not yet written
  const VectorUnit unit_;
  const int reach_;
  Normalizer normalizer_;
  // Squares: of the block before, of this one, of the one after.
  const Xbyak::Xmm value_ = Vector(0), low_ = Vector(1), middle_ = Vector(2), high_ = Vector(3);
  const Xbyak::Xmm sum_ = Vector(4), shifted_ = Vector(5);
  const Xbyak::Xmm low_middle_ = Vector(6), middle_high_ = Vector(7);
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
    args.before = first ? kZeros : src - next;
    args.before_step_bytes = first ? 0 : step_bytes;
    args.after = last ? kZeros : src + next;
    args.after_step_bytes = last ? 0 : step_bytes;
    generator_->entry<void (*)(const BlockArgs*)>()(&args);
  }

  const LrnDesc desc_;
  const int64_t lanes_, blocks_;
  int64_t pixels_ = 1;
  const std::unique_ptr<const BlockGenerator> generator_;
};

absl::Status RequireBlocked(const MemoryDesc& md, int64_t lanes) {
  if (md.inner_blocks() != InnerBlocks{{1, lanes}}) {
    return Unimplemented("takes channels in blocks of ", lanes, ", not ", md.ToString());
  }
  int64_t step = lanes;
  for (int d = md.rank() - 1; d >= 2; --d) {
    if (md.dim(d) != 1 && md.stride(d) != step) {
      return Unimplemented("pixels do not follow each other");
    }
    step *= md.dim(d);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LrnDesc> ResolveBlocked(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveDefaults(desc, request.attributes));
  const int64_t lanes = VectorUnit::Of(request.facts.isa).lanes();
  if (desc.algorithm != LrnAlgorithm::kAcrossChannels) {
    return Unimplemented("not across channels");
  }
  if (ReachOf(desc) > lanes) {
    return Unimplemented("local_size ", desc.local_size, " reaches beyond the next ", lanes,
                         " channels");
  }
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.src, lanes));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved.dst, lanes));
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
