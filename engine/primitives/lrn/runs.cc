// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
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
#include "engine/primitives/single_source.h"
#include "engine/threading/stop.h"

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

constexpr int64_t kRunPixelsPerTask = 1024;
constexpr int64_t kFloatBytes = sizeof(float);

struct Range {
  int64_t begin, end;
};
// The neighbours of `i` as distances from it.
Range Neighbours(int64_t i, int64_t reach, int64_t size) {
  return {std::max(-reach, -i), std::min(reach + 1, size - i)};
}

using Taps = absl::InlinedVector<int64_t, 32>;

// How a tensor falls into runs.
struct RunLayout {
  std::array<int64_t, 3> size = {1, 1, 1}, stride = {0, 0, 0};  // of depth, height, width
  int64_t cell = 1;      // elements of a pixel that follow each other, all of them channels
  int64_t channels = 1;  // cells of a pixel
  int64_t channel_stride = 0;
};

RunLayout RunLayoutOf(const MemoryDesc& md) {
  RunLayout layout;
  const int rank = md.rank();
  for (int d = 2; d < rank; ++d) {
    layout.size[d + 3 - rank] = md.dim(d);
    layout.stride[d + 3 - rank] = md.stride(d);
  }
  if (md.inner_blocks().empty() && md.stride(1) != 1) {
    layout.channels = md.dim(1);
    layout.channel_stride = md.stride(1);
  } else if (md.inner_blocks().empty()) {
    layout.cell = md.dim(1);  // all channels in one cell, even if there are none
    layout.channel_stride = md.stride(1);
  } else {
    layout.cell = md.BlockSize(1);
    layout.channels = md.padded_dims()[1] / layout.cell;
    layout.channel_stride = md.stride(1);
  }
  return layout;
}

// The distance between pixels that follow each other, 0 where it is not constant.
int64_t PixelStep(const RunLayout& layout) {
  int64_t step = 0, next = 0;
  for (int d = 2; d >= 0; --d) {
    if (layout.size[d] == 1) continue;
    if (step == 0) {
      step = next = layout.stride[d];
    }
    if (layout.stride[d] != next) return 0;
    next *= layout.size[d];
  }
  return step == 0 ? layout.cell : step;
}

// Immutable.
class Runs final : public SingleSource<float> {
 public:
  Runs(PrimitiveInfo primitive_info, const LrnDesc& desc,
       std::unique_ptr<const RunGenerator> generator)
      : SingleSource(std::move(primitive_info), /*spoils_padding=*/SpoilsPadding(desc)),
        desc_(desc),
        layout_(RunLayoutOf(desc.src)),
        pixels_(layout_.size[0] * layout_.size[1] * layout_.size[2]),
        generator_(std::move(generator)) {}

 private:
  void RunOn(const float* src, float* dst, const threading::Team& team) const override {
    if (desc_.src.ElementCount() == 0) return;
    if (desc_.algorithm == LrnAlgorithm::kWithinChannel) {
      RunWithin(src, dst, team);
    } else {
      RunAcross(src, dst, team);
    }
  }

  void RunAcross(const float* src, float* dst, const threading::Team& team) const {
    const int64_t step = PixelStep(layout_);
    const int64_t per_task = layout_.cell == 1 ? kRunPixelsPerTask : kRunPixelsPerTask / 16;
    const int64_t pieces = DivUp(pixels_, per_task);
    team.ParallelFor(desc_.src.dim(0) * pieces, [&](int64_t task) {
      const int64_t first = task % pieces * per_task;
      const int64_t count = std::min(per_task, pixels_ - first);
      const int64_t offset = task / pieces * desc_.src.stride(0) + first * step;
      if (layout_.cell == 1) {
        AcrossPlanes(src + offset, dst + offset, count);
      } else {
        for (int64_t p = 0; p < count; ++p) {
          AcrossCell(src + offset + p * step, dst + offset + p * step);
        }
      }
    });
  }

  // nchw: `count` pixels of every channel.
  void AcrossPlanes(const float* src, float* dst, int64_t count) const {
    for (int64_t c = 0; c < layout_.channels && !threading::Stopped(); ++c) {
      const Range range = Neighbours(c, ReachOf(desc_), layout_.channels);
      Taps taps;
      for (int64_t t = range.begin; t < range.end; ++t) {
        taps.push_back(t * layout_.channel_stride * kFloatBytes);
      }
      const int64_t offset = c * layout_.channel_stride;
      Call(src + offset, dst + offset, taps, count);
    }
  }

  // nhwc: the channels of one pixel.
  void AcrossCell(const float* src, float* dst) const {
    const int64_t reach = ReachOf(desc_);
    for (int64_t c = 0, count = 0; c < layout_.cell && !threading::Stopped(); c += count) {
      const Range range = Neighbours(c, reach, layout_.cell);
      const bool inner = range.begin == -reach && range.end == reach + 1;
      count = inner ? layout_.cell - reach - c : 1;
      Taps taps;
      for (int64_t t = range.begin; t < range.end; ++t) taps.push_back(t * kFloatBytes);
      Call(src + c, dst + c, taps, count);
    }
  }

  void RunWithin(const float* src, float* dst, const threading::Team& team) const {
    const int64_t rows = layout_.size[0] * layout_.size[1];
    team.ParallelFor(desc_.src.dim(0) * layout_.channels * layout_.size[0], [&](int64_t task) {
      const int64_t depth = task % layout_.size[0], c = task / layout_.size[0] % layout_.channels;
      const int64_t n = task / layout_.size[0] / layout_.channels;
      const int64_t offset = n * desc_.src.stride(0) + c * layout_.channel_stride;
      for (int64_t height = 0; height < rows / layout_.size[0]; ++height) {
        RunRow(src + offset, dst + offset, depth, height);
      }
    });
  }

  void RunRow(const float* src, float* dst, int64_t depth, int64_t height) const {
    const int64_t reach = ReachOf(desc_), width = layout_.size[2];
    const Range depths = Neighbours(depth, reach, layout_.size[0]);
    const Range heights = Neighbours(height, reach, layout_.size[1]);
    const int64_t row = depth * layout_.stride[0] + height * layout_.stride[1];
    for (int64_t w = 0, count = 0; w < width && !threading::Stopped(); w += count) {
      const Range widths = Neighbours(w, reach, width);
      const bool inner = widths.begin == -reach && widths.end == reach + 1;
      count = inner ? width - reach - w : 1;
      Taps taps;
      for (int64_t d = depths.begin; d < depths.end; ++d) {
        for (int64_t h = heights.begin; h < heights.end; ++h) {
          const int64_t to_row = d * layout_.stride[0] + h * layout_.stride[1];
          for (int64_t t = widths.begin; t < widths.end; ++t) {
            taps.push_back((to_row + t * layout_.stride[2]) * kFloatBytes);
          }
        }
      }
      const int64_t offset = row + w * layout_.stride[2];
      Call(src + offset, dst + offset, taps, count * layout_.cell);
    }
  }

  void Call(const float* src, float* dst, const Taps& taps, int64_t count) const {
    TILEWIRE_CHECK(!taps.empty(), "an element is a tap of its own");
    const RunArgs args = {src, dst, taps.data(), taps.data() + taps.size(), count};
    generator_->entry<RunGenerator::Function>()(&args);
  }

  const LrnDesc desc_;
  const RunLayout layout_;
  const int64_t pixels_;
  const std::unique_ptr<const RunGenerator> generator_;
};

}  // namespace

absl::StatusOr<LrnDesc> ResolveRuns(const Request<LrnDesc>& request) {
  const LrnDesc& desc = request.desc;
  ABSL_ASSIGN_OR_RETURN(LrnDesc resolved, ResolveDefaults(desc, request.attributes));
  const MemoryDesc& md = resolved.src;
  if (resolved.dst != md) return Unimplemented("layouts of src and dst differ");
  for (const InnerBlock& block : md.inner_blocks()) {
    if (block.dim != 1) return Unimplemented("blocked on another axis than 1");
  }
  const RunLayout layout = RunLayoutOf(md);
  if (desc.algorithm == LrnAlgorithm::kWithinChannel) {
    if (ReachOf(desc) > 64) return Unimplemented("local_size over 129");
    if (layout.size[2] > 1 && layout.stride[2] != layout.cell) {
      return Unimplemented("pixels of a row do not follow each other");
    }
    return resolved;
  }
  if (!md.inner_blocks().empty()) return Unimplemented("channels in blocks");
  const int64_t step = PixelStep(layout);
  if (layout.cell == 1 ? step != 1 : step == 0) {
    return Unimplemented("neither pixels nor channels follow each other");
  }
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
