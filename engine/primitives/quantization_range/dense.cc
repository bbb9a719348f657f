// SPDX-License-Identifier: Apache-2.0
//
// Every piece of work keeps the lowest and the highest element of its part of memory in the
// scratchpad; the thread that began the run takes the extremes of these. Padding between elements
// is 0, which changes no range.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_unit.h"
#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/quantization_range/implementations.h"

namespace tilewire::quantization_range {
namespace {

constexpr int64_t kChunk = DenseRunGenerator::kElementsAtOnce;
constexpr int64_t kMaxLanes = 16;

// A run widens the extremes at dst_: the lowest element of each lane, then the highest ones. They
// begin with 0, so that zeros after the last element change nothing.
class ExtremesGenerator final : public DenseRunGenerator {
 public:
  ExtremesGenerator(absl::string_view name, const jit::VectorUnit& unit)
      : DenseRunGenerator(name, {.unit = unit, .srcs = {DataType::kF32}, .dst = std::nullopt}) {}

 private:
  // Independent extremes: vectors 4 to 7 and 8 to 11.
  Xbyak::Xmm Lowest(int i) const { return Vector(kFree + i); }
  Xbyak::Xmm Highest(int i) const { return Vector(kFree + kUnroll + i); }

  void EmitConstants() override {
    for (int i = 0; i < kUnroll; ++i) {
      vmovups(Lowest(i), ptr[dst_]);
      vmovups(Highest(i), ptr[dst_ + unit().bytes()]);
    }
  }

  // The instructions give their second source where the first is NaN.
  void EmitVectors(int vectors) override {
    for (int v = 0; v < vectors; ++v) {
      Load(0, v, Value(v));
      vminps(Lowest(v), Value(v), Lowest(v));
      vmaxps(Highest(v), Value(v), Highest(v));
    }
  }

  void EmitResults() override {
    for (int i = 1; i < kUnroll; ++i) {
      vminps(Lowest(0), Lowest(0), Lowest(i));
      vmaxps(Highest(0), Highest(0), Highest(i));
    }
    vmovups(ptr[dst_], Lowest(0));
    vmovups(ptr[dst_ + unit().bytes()], Highest(0));
  }
};

struct Extremes {
  float low = 0, high = 0;
  void Include(float x) {
    low = x < low ? x : low;
    high = x > high ? x : high;
  }
};

struct ExtremesDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const float>(kArgSrc);
    auto* of_chunks = reinterpret_cast<Extremes*>(run.scratchpad);
    const int64_t chunks = DivUp(count, kChunk);
    run.team.ParallelFor(chunks, [&](int64_t chunk) {
      const int64_t first = chunk * kChunk;
      of_chunks[chunk] = ExtremesOf(src + first, std::min(kChunk, count - first));
    });
    Extremes all;
    for (int64_t chunk = 0; chunk < chunks; ++chunk) {
      all.Include(of_chunks[chunk].low);
      all.Include(of_chunks[chunk].high);
    }
    StoreRange(all.low, all.high, run.First<float>(kArgDst));
  }

  size_t code_bytes() const { return generator->code_bytes(); }

  Extremes ExtremesOf(const float* src, int64_t elements) const {
    alignas(64) float of_lanes[2 * kMaxLanes] = {};
    generator->Run({reinterpret_cast<const std::byte*>(src)},
                   reinterpret_cast<std::byte*>(of_lanes), elements);
    Extremes extremes;
    for (int64_t i = 0; i < 2 * lanes; ++i) extremes.Include(of_lanes[i]);
    return extremes;
  }

  int64_t lanes, count;
  std::unique_ptr<const ExtremesGenerator> generator;
};

}  // namespace

absl::StatusOr<QuantizationRangeDesc> ResolveDenseExtremes(
    const Request<QuantizationRangeDesc>& request) {
  if (!request.desc.src.IsDense()) return Unimplemented("src is not dense");
  return ResolveReference(request);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseExtremes(
    const Request<QuantizationRangeDesc>& request) {
  const jit::VectorUnit unit = jit::VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<ExtremesGenerator>(request.facts.name, unit));
  const int64_t count = request.desc.src.PaddedElementCount();
  PrimitiveInfo info = InfoOf(request);
  info.scratchpad_bytes = DivUp(count, kChunk) * static_cast<int64_t>(sizeof(Extremes));
  return MakeDriven(std::move(info), ExtremesDriver{unit.lanes(), count, std::move(generator)});
}

}  // namespace tilewire::quantization_range
