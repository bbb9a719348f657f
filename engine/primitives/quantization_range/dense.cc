// SPDX-License-Identifier: Apache-2.0
//
// Every piece of work keeps the lowest and the highest element of its part of memory in the
// scratchpad; the thread that began the run takes the extremes of these. Padding between elements
// is 0, which changes no range.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/quantization_range/implementations.h"

namespace tilewire::quantization_range {
namespace {

constexpr int64_t kChunk = 16 * 1024;  // elements: for one thread at a time
constexpr int64_t kMaxLanes = 16;

// void(const float* src, float* lowest, int64_t vectors): the lowest element of each lane, and 0,
// then the highest ones a vector further. vectors >= 1.
class ExtremesGenerator final : public jit::Generator {
 public:
  ExtremesGenerator(absl::string_view name, const jit::VectorUnit& unit)
      : Generator(name), unit_(unit) {}

 private:
  static constexpr int kUnroll = 4;  // independent extremes: vectors 0 to 3 and 4 to 7

  // Arguments arrive as System V rdi, rsi, rdx.
  const Xbyak::Reg64 src_ = rdi, extremes_ = rsi, left_ = rdx;

  Xbyak::Xmm Lowest(int i) const { return unit_.Vector(i); }
  Xbyak::Xmm Highest(int i) const { return unit_.Vector(kUnroll + i); }

  void Emit() override {
    for (int i = 0; i < 2 * kUnroll; ++i) unit_.Zero(this, unit_.Vector(i));
    EmitLoop(kUnroll);
    EmitLoop(1);
    for (int i = 1; i < kUnroll; ++i) {
      vminps(Lowest(0), Lowest(0), Lowest(i));
      vmaxps(Highest(0), Highest(0), Highest(i));
    }
    vmovups(ptr[extremes_], Lowest(0));
    vmovups(ptr[extremes_ + unit_.bytes()], Highest(0));
    vzeroupper();
    ret();
  }

  // The instructions give their second source where the first is NaN.
  void EmitLoop(int vectors) {
    EmitWhileLeft(this, left_, vectors, [&] {
      for (int v = 0; v < vectors; ++v) {
        const Xbyak::Xmm element = unit_.Vector(2 * kUnroll + v);
        vmovups(element, ptr[src_ + v * unit_.bytes()]);
        vminps(Lowest(v), element, Lowest(v));
        vmaxps(Highest(v), element, Highest(v));
      }
      add(src_, vectors * unit_.bytes());
    });
  }

  const jit::VectorUnit unit_;
};

// Immutable.
class Dense final : public Primitive {
 public:
  Dense(std::unique_ptr<const ExtremesGenerator> generator, const jit::VectorUnit& unit,
        const QuantizationRangeDesc& desc, PrimitiveInfo its_info)
      : Primitive(std::move(its_info)),
        lanes_(unit.lanes()),
        count_(desc.src.PaddedElementCount()),
        src_base_(desc.src.offset0()),
        dst_base_(desc.dst.offset0()),
        generator_(std::move(generator)) {}

 private:
  struct Extremes {
    float low = 0, high = 0;
    void Include(float x) {
      low = x < low ? x : low;
      high = x > high ? x : high;
    }
  };

  void Run(const ExecuteArgs& args, std::byte* scratchpad,
           const threading::Team& team) const override {
    const float* src = args.Get<const float>(kArgSrc) + src_base_;
    auto* of_chunks = reinterpret_cast<Extremes*>(scratchpad);
    const int64_t chunks = DivUp(count_, kChunk);
    team.ParallelFor(chunks, [&](int64_t chunk) {
      const int64_t first = chunk * kChunk;
      of_chunks[chunk] = ExtremesOf(src + first, std::min(kChunk, count_ - first));
    });
    Extremes all;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      all.Include(of_chunks[chunk].low);
      all.Include(of_chunks[chunk].high);
    }
    StoreRange(all.low, all.high, args.Get<float>(kArgDst) + dst_base_);
  }

  Extremes ExtremesOf(const float* src, int64_t count) const {
    using Function = void (*)(const float*, float*, int64_t);
    alignas(64) float lanes[2 * kMaxLanes];
    Extremes extremes;
    const int64_t vectors = count / lanes_;
    if (vectors > 0) {
      generator_->entry<Function>()(src, lanes, vectors);
      for (int64_t i = 0; i < 2 * lanes_; ++i) extremes.Include(lanes[i]);
    }
    for (int64_t i = vectors * lanes_; i < count; ++i) extremes.Include(src[i]);
    return extremes;
  }

  const int64_t lanes_, count_, src_base_, dst_base_;
  const std::unique_ptr<const ExtremesGenerator> generator_;
};

}  // namespace

absl::StatusOr<QuantizationRangeDesc> ResolveDenseExtremes(
    const Request<QuantizationRangeDesc>& request) {
  if (!request.desc.src.IsDense()) return absl::UnimplementedError("src is not dense");
  return ResolveReference(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseExtremes(
    const Request<QuantizationRangeDesc>& request) {
  const jit::VectorUnit unit = jit::VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<ExtremesGenerator>(request.facts.name, unit));
  PrimitiveInfo info = WithCode(InfoOf(request), *generator);
  info.scratchpad_bytes = DivUp(request.desc.src.PaddedElementCount(), kChunk) * 2 *
                          static_cast<int64_t>(sizeof(float));
  return std::make_unique<Dense>(std::move(generator), unit, request.desc, std::move(info));
}

}  // namespace tilewire::quantization_range
