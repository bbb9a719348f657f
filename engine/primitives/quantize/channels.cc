// SPDX-License-Identifier: Apache-2.0
//
// Real numbers of integers by generated code, where elements lie in one order on both sides,
// without gaps. Elements are taken in runs. Where neighbours belong to neighbouring indices of the
// axis, all elements are one run, in which a pattern of zero points, scales and shifts repeats
// (three vectors for pixels of three colours); otherwise a run is what lies together at one index
// of the axis.
#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/kernels/elements/vector_conversion.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/quantize/implementations.h"

namespace tilewire::quantize {
namespace {

constexpr int64_t kLeastChunk = 16 * 1024;  // elements: for one thread at a time
constexpr int64_t kMostVectors = 16;        // of a pattern
constexpr int64_t kMostLanes = 16;
constexpr int64_t kParameters = 3;  // zero point, scale, shift: a vector of each for each of these

struct PatternArgs {
  const void* src;
  float* dst;
  const float* pattern;
  jit::LoopCount repeats;
};

class PatternGenerator final : public jit::Generator {
 public:
  PatternGenerator(absl::string_view name, const VectorUnit& unit, DataType src, int64_t vectors)
      : Generator(name),
        unit_(unit),
        type_(src),
        vectors_(static_cast<int>(vectors)),
        conversion_(this, unit, /*tail_lanes=*/0,
                    {.spare = rax, .scratch = {4, 5, 6}, .tail = k2, .mask = k3}) {}

 private:
  void Emit() override {
    mov(src_, ptr[rdi + offsetof(PatternArgs, src)]);
    mov(dst_, ptr[rdi + offsetof(PatternArgs, dst)]);
    mov(pattern_, ptr[rdi + offsetof(PatternArgs, pattern)]);
    mov(left_, ptr[rdi + offsetof(PatternArgs, repeats)]);
    const int src_bytes = unit_.lanes() * static_cast<int>(SizeOf(type_));
    Xbyak::Label next;
    L(next);
    for (int v = 0; v < vectors_; ++v) {
      const Xbyak::Xmm number = unit_.Vector(v % 4);
      const int at = v * static_cast<int>(kParameters) * unit_.bytes();
      conversion_.Load(type_, number, src_ + v * src_bytes, /*tail=*/false);
      vsubps(number, number, ptr[pattern_ + at]);
      vmulps(number, number, ptr[pattern_ + at + unit_.bytes()]);
      vaddps(number, number, ptr[pattern_ + at + 2 * unit_.bytes()]);
      vmovups(ptr[dst_ + v * unit_.bytes()], number);
    }
    add(src_, vectors_ * src_bytes);
    add(dst_, vectors_ * unit_.bytes());
    dec(left_);
    jnz(next, T_NEAR);
    vzeroupper();
    ret();
    conversion_.EmitTable();
  }

  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, pattern_ = rcx, left_ = r8;
  const VectorUnit unit_;
  const DataType type_;
  const int vectors_;
  VectorConversion conversion_;
};

// How the elements fall into runs, in the order of memory.
struct Runs {
  int64_t elements = 0;  // of a run
  int64_t patterns = 1;  // run i has pattern i modulo these
  int64_t vectors = 1;   // of a pattern
};

Runs RunsOf(const QuantizeDesc& desc, int64_t lanes) {
  const int64_t indices = static_cast<int64_t>(desc.scales.size());
  if (indices == 1) return {.elements = desc.dst.PaddedElementCount()};
  const int64_t stride = desc.dst.stride(desc.axis);
  if (stride != 1) return {.elements = stride, .patterns = indices};
  return {.elements = desc.dst.ElementCount(), .vectors = std::lcm(indices, lanes) / lanes};
}

// [pattern][vector][parameter][lane]
std::vector<float> PatternsOf(const QuantizeDesc& desc, const Runs& runs, int64_t lanes) {
  std::vector<float> patterns(runs.patterns * runs.vectors * kParameters * lanes);
  const size_t indices = desc.scales.size();
  for (int64_t p = 0; p < runs.patterns; ++p) {
    for (int64_t i = 0; i < runs.vectors * lanes; ++i) {
      const size_t index = runs.patterns > 1 ? p : i % indices;
      float* to = &patterns[(p * runs.vectors + i / lanes) * kParameters * lanes + i % lanes];
      to[0] = static_cast<float>(desc.zero_points[index]);
      to[lanes] = desc.scales[index];
      to[2 * lanes] = ShiftOf(desc, index);
    }
  }
  return patterns;
}

struct ChannelsDriver {
  void Run(const DrivenRun& run) const {
    const auto* src = run.First<const std::byte>(kArgSrc);
    auto* dst = run.First<float>(kArgDst);
    if (count == 0) return;
    const int64_t chunk = RoundUp(kLeastChunk, runs.vectors * lanes);
    const int64_t chunks = DivUp(runs.elements, chunk);
    run.team.ParallelFor(count / runs.elements * chunks, [&](int64_t task) {
      const int64_t at_run = task / chunks, first = task % chunks * chunk;
      const int64_t at = at_run * runs.elements + first;
      const float* pattern = &patterns[at_run % runs.patterns * runs.vectors * kParameters * lanes];
      Convert(src + at * src_bytes, dst + at, std::min(chunk, runs.elements - first), pattern);
    });
  }
  size_t code_bytes() const {
    return generator->code_bytes() + patterns.size() * sizeof(patterns[0]);
  }

  // Elements after the last whole pattern go through copies.
  void Convert(const std::byte* src, float* dst, int64_t elements, const float* pattern) const {
    const auto function = generator->entry<void (*)(const PatternArgs*)>();
    const int64_t period = runs.vectors * lanes, whole = elements / period * period;
    if (whole > 0) {
      const PatternArgs args = {src, dst, pattern, whole / period};
      function(&args);
    }
    if (whole == elements) return;
    alignas(64) std::byte last[kMostVectors * kMostLanes * sizeof(float)] = {};
    alignas(64) float numbers[kMostVectors * kMostLanes];
    std::memcpy(last, src + whole * src_bytes, (elements - whole) * src_bytes);
    const PatternArgs args = {last, numbers, pattern, 1};
    function(&args);
    std::memcpy(dst + whole, numbers, (elements - whole) * sizeof(float));
  }

  int64_t count, src_bytes, lanes;
  Runs runs;
  std::vector<float> patterns;
  std::unique_ptr<const PatternGenerator> generator;
};

}  // namespace

absl::StatusOr<QuantizeDesc> ResolveChannels(const Request<QuantizeDesc>& request) {
  const QuantizeDesc& desc = request.desc;
  if (!desc.range.IsZero() || desc.dst.data_type() != DataType::kF32)
    return Unimplemented("gives real numbers by known scales");
  ABSL_ASSIGN_OR_RETURN(QuantizeDesc resolved, ResolveReference(request));
  const MemoryDesc& dst = resolved.dst;
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc as_dst, resolved.src.WithDataType(DataType::kF32));
  const bool is_one = desc.scales.size() == 1;
  if (as_dst != dst || !dst.IsDense() || dst.HasPadding() || (!is_one && !dst.IsPlain()))
    return Unimplemented("takes src and dst in one order, without gaps");
  if (RunsOf(resolved, VectorUnit::Of(request.facts.isa).lanes()).vectors > kMostVectors)
    return Unimplemented("takes patterns of up to 16 vectors");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateChannels(const Request<QuantizeDesc>& request) {
  const QuantizeDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const Runs runs = RunsOf(desc, unit.lanes());
  ABSL_ASSIGN_OR_RETURN(
      auto generator,
      jit::Compile<PatternGenerator>(request.facts.name, unit, desc.src.data_type(), runs.vectors));
  return MakeDriven(
      InfoOf(request),
      ChannelsDriver{desc.dst.PaddedElementCount(), SizeOf(desc.src.data_type()), unit.lanes(),
                     runs, PatternsOf(desc, runs, unit.lanes()), std::move(generator)});
}

}  // namespace tilewire::quantize
