// SPDX-License-Identifier: Apache-2.0
//
// With u = k + scale * sum of src^2 and both sums over the neighbours of a channel,
//
//   terms      t = dy src u^(-beta - 1)                   and p = dy u^-beta
//   gradient   diff_src = p - 2 scale beta src * sum of t
//
// A piece of work is some pixels of all channels, of which a few at a time go through all blocks:
// block after block gets its terms, which stay in the first cache, and then the block before it,
// whose neighbours are all there, its gradient. The core follows the blocks side by side then, and
// fetches the next pixels of each. A large diff_src is written past the caches: what is about to be
// overwritten need not be read.
#include <emmintrin.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/store_forms.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/lrn/block_neighbours.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/normalizer.h"
#include "engine/threading/stop.h"

namespace tilewire::lrn {
namespace {

constexpr int64_t kPiecePixels = 256;
constexpr int kPixelsTogether = 16;                      // that go through all blocks
constexpr int64_t kMostElements = kPixelsTogether * 16;  // of those of a block
constexpr int64_t kBlocksInWork = 3;                     // whose terms are needed at a time
constexpr int64_t kLarge = int64_t{16} << 20;            // bytes, which no cache of a core holds

// Stand for the block before the first and after the last.
alignas(64) constexpr float kZeros[kMostElements] = {};

struct BlockGradientArgs {
  const float *before, *values, *after;  // of one pixel: of src; of the terms
  const float* other;                    // diff_dst; src
  // Where terms are computed, p and they; where a gradient is, diff_src, and p which is read.
  float *to, *terms;
  jit::LoopCount pixels;
};

// Each pixel waits for its own results most of the time: a few of them are computed side by side,
// every one as if it were alone.
class BlockGradientGenerator final : public jit::Generator {
 public:
  BlockGradientGenerator(absl::string_view name, const NormalizerConfig& config, int reach,
                         GradientPass pass, bool streams)
      : Generator(name),
        unit_(config.unit),
        pass_(pass),
        streams_(streams),
        factor_of_sums_(2 * config.beta * config.scale),
        normalizer_(this, config, rax, NeighbourSums::kVectors - NeighbourSums::kSpare) {
    for (int pixel = 0; pixel < SideBySide(); ++pixel)
      neighbours_.emplace_back(this, unit_, reach, pixel * NeighbourSums::kVectors);
  }

  void Run(const BlockGradientArgs& args) const {
    entry<void (*)(const BlockGradientArgs*)>()(&args);
  }

 private:
  // To the next pixels of a block, which are fetched while these are computed.
  int ahead_bytes() const { return kPixelsTogether * unit_.bytes(); }
  int SideBySide() const { return (unit_.registers() - kOthers) / NeighbourSums::kVectors; }

  void Emit() override {
    mov(values_, ptr[rdi + offsetof(BlockGradientArgs, values)]);
    mov(before_, ptr[rdi + offsetof(BlockGradientArgs, before)]);
    mov(after_, ptr[rdi + offsetof(BlockGradientArgs, after)]);
    mov(other_, ptr[rdi + offsetof(BlockGradientArgs, other)]);
    mov(to_, ptr[rdi + offsetof(BlockGradientArgs, to)]);
    mov(terms_, ptr[rdi + offsetof(BlockGradientArgs, terms)]);
    mov(left_, ptr[rdi + offsetof(BlockGradientArgs, pixels)]);
    if (pass_ == GradientPass::kGradient) unit_.Broadcast(this, factor_, factor_of_sums_, rax);
    normalizer_.LoadTable();
    for (int pixels : {SideBySide(), 1}) {
      EmitWhileLeft(this, left_, pixels, [&] {
        pass_ == GradientPass::kTerms ? EmitTerms(pixels) : EmitGradients(pixels);
        for (const Xbyak::Reg64& pointer : {values_, before_, after_, other_, to_, terms_})
          add(pointer, pixels * unit_.bytes());
      });
    }
    vzeroupper();
    ret();
    normalizer_.EmitTable();
  }

  void EmitTerms(int pixels) {
    for (int i = 0; i < pixels; ++i) {
      LoadNeighbours(i);
      neighbours_[i].EmitOfSquares();
    }
    // The spare vectors of pixel 0 are the normalizer's scratch from here on.
    for (int i = 0; i < pixels; ++i) {
      prefetcht0(At(values_, i, ahead_bytes()));
      prefetcht0(At(other_, i, ahead_bytes()));
      EmitTerm(neighbours_[i].sum(), neighbours_[i].middle(), i);
    }
  }

  void EmitTerm(const Xbyak::Xmm& sum, const Xbyak::Xmm& value, int pixel) {
    normalizer_.ToBase(sum);
    if (normalizer_.HasPowers()) {
      normalizer_.Powers(sum, base_);
      vmulps(sum, sum, At(other_, pixel));
      vmulps(base_, base_, value);
    } else {
      vmovaps(base_, sum);
      vmovups(factor_, At(other_, pixel));
      normalizer_.Normalize(sum, factor_);
      vdivps(base_, value, base_);
    }
    vmovups(At(to_, pixel), sum);
    vmulps(sum, sum, base_);
    vmovups(At(terms_, pixel), sum);
  }

  void EmitGradients(int pixels) {
    for (int i = 0; i < pixels; ++i) {
      const Xbyak::Xmm &sum = neighbours_[i].sum(), &value = neighbours_[i].middle();
      LoadNeighbours(i);
      if (!streams_) prefetchw(At(to_, i, ahead_bytes()));
      neighbours_[i].Emit();
      vmulps(sum, sum, factor_);
      vmovups(value, At(terms_, i));
      vfnmadd231ps(value, sum, At(other_, i));
      streams_ ? vmovntps(At(to_, i), value) : vmovups(At(to_, i), value);
    }
  }

  void LoadNeighbours(int pixel) {
    vmovups(neighbours_[pixel].middle(), At(values_, pixel));
    vmovups(neighbours_[pixel].low(), At(before_, pixel));
    vmovups(neighbours_[pixel].high(), At(after_, pixel));
  }

  Xbyak::Address At(const Xbyak::Reg64& pointer, int pixel, int bytes_on = 0) {
    return ptr[pointer + pixel * unit_.bytes() + bytes_on];
  }

  // Registers. Arguments arrive in rdi; vectors from 0 on are the neighbours' of the pixels.
  static constexpr int kOthers = 2;  // vectors
  const Xbyak::Reg64 values_ = rsi, before_ = r8, after_ = r9, other_ = r10;
  const Xbyak::Reg64 to_ = rdx, terms_ = r11, left_ = rcx;
  const VectorUnit unit_;
  const GradientPass pass_;
  const bool streams_;
  const float factor_of_sums_;
  std::vector<NeighbourSums> neighbours_;
  Normalizer normalizer_;
  static_assert(Normalizer::kScratch <= NeighbourSums::kSpare);
  const Xbyak::Xmm base_ = unit_.Vector(unit_.registers() - 1);
  const Xbyak::Xmm factor_ = unit_.Vector(unit_.registers() - 2);  // of sums, or diff_dst
};

struct BlockedGradient {
  // The blocks in work have these in turn.
  struct InWork {
    float terms[kBlocksInWork][kMostElements];
    float products[kBlocksInWork][kMostElements];  // p
  };
  // A few pixels of all blocks of an image.
  struct Pixels {
    const float *src, *diff_dst;
    float* diff_src;
    InWork* in_work;
    int64_t count;
  };

  void Run(const DrivenRun& run) const {
    const auto* const src = run.First<const float>(kArgSrc);
    const auto* const diff_dst = run.First<const float>(kArgDiffDst);
    auto* const diff_src = run.First<float>(kArgDiffSrc);
    const int64_t pieces = DivUp(image_pixels, kPiecePixels);
    run.team.ParallelFor(desc.src.dim(0) * pieces, [&](int64_t index) {
      alignas(64) InWork in_work;
      const int64_t n = index / pieces, begin = index % pieces * kPiecePixels;
      const int64_t end = std::min(begin + kPiecePixels, image_pixels);
      for (int64_t first = begin; first < end; first += kPixelsTogether) {
        RunPixels({src + n * desc.src.stride(0) + first * lanes,
                   diff_dst + n * desc.diff_dst.stride(0) + first * lanes,
                   diff_src + n * desc.diff_src.stride(0) + first * lanes, &in_work,
                   std::min<int64_t>(kPixelsTogether, end - first)});
      }
      if (gradient_code.streaming != nullptr) _mm_sfence();  // before others are told of its end
    });
    ZeroPadding(desc.diff_src, run.args.Find(kArgDiffSrc));
  }
  int64_t code_bytes() const {
    return static_cast<int64_t>(terms_code->code_bytes() + gradient_code.code_bytes());
  }

  void RunPixels(const Pixels& pixels) const {
    for (int64_t block = 0; block < blocks && !threading::Stopped(); ++block) {
      RunTerms(pixels, block);
      if (block > 0) RunGradient(pixels, block - 1);
    }
    if (blocks > 0) RunGradient(pixels, blocks - 1);
  }

  void RunTerms(const Pixels& pixels, int64_t block) const {
    const int64_t next = desc.src.stride(1);
    const float* const src = pixels.src + block * next;
    BlockGradientArgs args =
        Between(block > 0 ? src - next : nullptr, src, block + 1 < blocks ? src + next : nullptr);
    args.other = pixels.diff_dst + block * desc.diff_dst.stride(1);
    args.to = pixels.in_work->products[block % kBlocksInWork];
    args.terms = TermsOf(pixels, block);
    args.pixels = pixels.count;
    terms_code->Run(args);
  }

  void RunGradient(const Pixels& pixels, int64_t block) const {
    BlockGradientArgs args =
        Between(block > 0 ? TermsOf(pixels, block - 1) : nullptr, TermsOf(pixels, block),
                block + 1 < blocks ? TermsOf(pixels, block + 1) : nullptr);
    args.other = pixels.src + block * desc.src.stride(1);
    args.to = pixels.diff_src + block * desc.diff_src.stride(1);
    args.terms = pixels.in_work->products[block % kBlocksInWork];
    args.pixels = pixels.count;
    gradient_code.For(args.to).Run(args);
  }

  float* TermsOf(const Pixels& pixels, int64_t block) const {
    return pixels.in_work->terms[block % kBlocksInWork];
  }

  // A block and its neighbours. `before` and `after` are null at the first and the last block.
  static BlockGradientArgs Between(const float* before, const float* values, const float* after) {
    BlockGradientArgs args;
    args.values = values;
    args.before = before == nullptr ? kZeros : before;
    args.after = after == nullptr ? kZeros : after;
    return args;
  }

  LrnDesc desc;
  int64_t lanes, blocks, image_pixels;
  std::unique_ptr<const BlockGradientGenerator> terms_code;
  jit::StoreForms<BlockGradientGenerator> gradient_code;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveBlockedBackward(const Request<LrnDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveReferenceBackward(request));
  ABSL_RETURN_IF_ERROR(RequireBlocked(resolved,
                                      {&resolved.src, &resolved.diff_src, &resolved.diff_dst},
                                      VectorUnit::Of(request.facts.isa)));
  ABSL_RETURN_IF_ERROR(RequirePositiveBases(resolved));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBlockedBackward(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  const NormalizerConfig config = {VectorUnit::Of(request.facts.isa), ScaleOf(desc), desc.beta,
                                   desc.k};
  const auto compile = [&](GradientPass pass, bool streams) {
    return jit::Compile<BlockGradientGenerator>(request.facts.name, config,
                                                static_cast<int>(ReachOf(desc)), pass, streams);
  };
  BlockedGradient gradient;
  gradient.desc = desc;
  gradient.lanes = config.unit.lanes();
  gradient.blocks = desc.src.padded_dims()[1] / gradient.lanes;
  gradient.image_pixels = 1;
  for (int d = 2; d < desc.src.rank(); ++d) gradient.image_pixels *= desc.src.dim(d);
  ABSL_ASSIGN_OR_RETURN(gradient.terms_code, compile(GradientPass::kTerms, /*streams=*/false));
  ABSL_ASSIGN_OR_RETURN(gradient.gradient_code.plain,
                        compile(GradientPass::kGradient, /*streams=*/false));
  if (desc.diff_src.SizeBytes() > kLarge) {
    ABSL_ASSIGN_OR_RETURN(gradient.gradient_code.streaming,
                          compile(GradientPass::kGradient, /*streams=*/true));
  }
  return MakeDriven(BackwardInfoOf(request), std::move(gradient));
}

}  // namespace tilewire::lrn
