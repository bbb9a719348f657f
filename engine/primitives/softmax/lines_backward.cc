// SPDX-License-Identifier: Apache-2.0
//
// Gradients of tensors that are dense in one plain layout. A line is what the axis runs over; it is
// walked twice, for its sum and for the gradient. Where the axis is the innermost dimension the
// lanes of a vector are elements of one line, elsewhere they are neighbouring lines.
#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/loop_count.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"
#include "engine/kernels/products/counted_loop.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/threading/ranges.h"

namespace tilewire::softmax {
namespace {

constexpr int64_t kElementsOfPiece = 8192;
constexpr int64_t kLongestLine = (int64_t{1} << 28) - 1;  // a displacement reaches over it

struct LineArgs {
  const float *y, *dy;
  float* dx;
  jit::LoopCount lines;
};

struct LineConfig {
  VectorUnit unit;
  bool is_log = false;
  int64_t size = 1;    // of a line
  int64_t stride = 1;  // from element to element; if it is not 1, lines lie side by side
};

class LineGenerator final : public jit::Generator {
 public:
  LineGenerator(absl::string_view name, const LineConfig& config)
      : Generator(name),
        config_(config),
        math_(this, config.unit, rax, k1),
        tail_(this, config.unit, {.spare = r11, .opmask = k2, .vector = 15}) {}

  void Run(const LineArgs& args) const { entry<void (*)(const LineArgs*)>()(&args); }

 private:
  static constexpr int kUnroll = 4;

  void Emit() override {
    mov(y_, ptr[rdi + offsetof(LineArgs, y)]);
    mov(dy_, ptr[rdi + offsetof(LineArgs, dy)]);
    mov(dx_, ptr[rdi + offsetof(LineArgs, dx)]);
    mov(lines_, ptr[rdi + offsetof(LineArgs, lines)]);
    math_.LoadTable();
    is_row() ? EmitRows() : EmitColumns();
    vzeroupper();
    ret();
    math_.EmitTable();
    if (!is_row() || RowTail() != 0) tail_.EmitTable();
  }

  void EmitRows() {
    if (RowTail() != 0) tail_.Set(RowTail());
    Xbyak::Label row;
    L(row);
    ClearSums(kUnroll);
    ForEachVectorOfRow([this](int v, bool masked) { EmitTerm(v, masked); });
    for (int v = 1; v < kUnroll; ++v) vaddps(Sum(0), Sum(0), Sum(v));
    config_.unit.FoldLanes(this, Sum(0), Scratch(0), [&] { vaddps(Sum(0), Sum(0), Scratch(0)); });
    vbroadcastss(Sum(0), Xbyak::Xmm(Sum(0).getIdx()));
    ForEachVectorOfRow([this](int v, bool masked) { EmitGradient(v, Sum(0), masked); });
    for (const Xbyak::Reg64& pointer : {y_, dy_, dx_})
      add(pointer, static_cast<int>(config_.size * int64_t{sizeof(float)}));
    dec(lines_);
    jnz(row, T_NEAR);
  }

  // Calls body(v, masked) for each vector of a row, v vectors after at_.
  template <typename Body>
  void ForEachVectorOfRow(Body body) {
    const int64_t vectors = config_.size / lanes();
    xor_(at_, at_);
    if (vectors >= kUnroll) {
      Loop(vectors / kUnroll, [&] {
        for (int v = 0; v < kUnroll; ++v) body(v, false);
        add(at_, kUnroll * vector_bytes());
      });
    }
    const int rest = static_cast<int>(vectors % kUnroll);
    for (int v = 0; v < rest; ++v) body(v, false);
    if (RowTail() != 0) body(rest, true);
  }

  void EmitColumns() {
    mov(stride_, config_.stride * int64_t{sizeof(float)});
    for (int vectors : {kUnroll, 1}) {
      EmitWhileLeft(this, lines_, vectors * lanes(), [&] {
        EmitColumnVectors(vectors, /*masked=*/false);
        for (const Xbyak::Reg64& pointer : {y_, dy_, dx_}) add(pointer, vectors * vector_bytes());
      });
    }
    EmitIfLeft(this, lines_, [&] {
      tail_.Set(lines_);
      EmitColumnVectors(1, /*masked=*/true);
    });
  }

  void EmitColumnVectors(int vectors, bool masked) {
    ClearSums(vectors);
    for (bool sums : {true, false}) {
      xor_(at_, at_);
      Loop(config_.size, [&] {
        for (int v = 0; v < vectors; ++v)
          sums ? EmitTerm(v, masked) : EmitGradient(v, Sum(v), masked);
        add(at_, stride_);
      });
    }
  }

  template <typename Body>
  void Loop(int64_t count, Body body) {
    Xbyak::Label next;
    mov(left_, count);
    L(next);
    body();
    dec(left_);
    jnz(next, T_NEAR);
  }

  void ClearSums(int count) {
    for (int v = 0; v < count; ++v) config_.unit.Zero(this, Sum(v));
  }

  // sum += dy y, or dy of logsoftmax
  void EmitTerm(int v, bool masked) {
    tail_.Load(Value(v), At(dy_, v), masked);
    if (config_.is_log) return vaddps(Sum(v), Sum(v), Value(v));
    tail_.Load(Scratch(0), At(y_, v), masked);
    vfmadd231ps(Sum(v), Value(v), Scratch(0));
  }

  // dx = y (dy - sum), or dy - e^y sum of logsoftmax
  void EmitGradient(int v, const Xbyak::Xmm& sum, bool masked) {
    tail_.Load(Value(v), At(dy_, v), masked);
    tail_.Load(Scratch(0), At(y_, v), masked);
    if (config_.is_log) {
      math_.Exp(Scratch(0), Scratch(1), Scratch(2));
      vfnmadd231ps(Value(v), Scratch(0), sum);
    } else {
      vsubps(Value(v), Value(v), sum);
      vmulps(Value(v), Value(v), Scratch(0));
    }
    tail_.Store(At(dx_, v), Value(v), masked);
  }

  bool is_row() const { return config_.stride == 1; }
  int lanes() const { return config_.unit.lanes(); }
  int vector_bytes() const { return config_.unit.bytes(); }
  int RowTail() const { return static_cast<int>(config_.size % lanes()); }
  Xbyak::Address At(const Xbyak::Reg64& base, int v) const {
    return ptr[base + at_ + v * vector_bytes()];
  }
  Xbyak::Xmm Value(int v) const { return config_.unit.Vector(v); }
  Xbyak::Xmm Sum(int v) const { return config_.unit.Vector(kUnroll + v); }
  Xbyak::Xmm Scratch(int i) const { return config_.unit.Vector(2 * kUnroll + i); }  // 0 to 2

  // Registers. Arguments arrive in rdi; the tensors lie alike, so that one offset serves them all.
  const Xbyak::Reg64 y_ = rsi, dy_ = rdx, dx_ = rcx, lines_ = r8;
  const Xbyak::Reg64 at_ = r9, left_ = r10, stride_ = rdi;
  const LineConfig config_;
  jit::VectorMath math_;
  jit::TailMask tail_;
};

struct LineGradient {
  void Run(const DrivenRun& run) const {
    const auto* const y = run.First<const float>(kArgDst);
    const auto* const dy = run.First<const float>(kArgDiffDst);
    auto* const dx = run.First<float>(kArgDiffSrc);
    const auto compute = [&](int64_t first, int64_t lines) {
      code->Run({y + first, dy + first, dx + first, lines});
    };
    if (config.stride == 1) {
      const int64_t at_once = threading::ItemsAtOnce(kElementsOfPiece, config.size);
      threading::ParallelForRanges(
          run.team, elements / config.size, at_once,
          [&](int64_t first, int64_t end) { compute(first * config.size, end - first); });
      return;
    }
    const int64_t block = config.size * config.stride, at_once = LinesAtOnce();
    const int64_t pieces = DivUp(config.stride, at_once);
    run.team.ParallelFor(elements / block * pieces, [&](int64_t piece) {
      const int64_t first = piece % pieces * at_once;
      compute(piece / pieces * block + first, std::min(at_once, config.stride - first));
    });
  }
  size_t code_bytes() const { return code->code_bytes(); }

  // Neighbouring lines, in whole vectors.
  int64_t LinesAtOnce() const {
    constexpr int64_t kFewest = 64;
    return RoundUp(threading::ItemsAtOnce(kElementsOfPiece, config.size), kFewest);
  }

  LineConfig config;
  int64_t elements;
  std::unique_ptr<const LineGenerator> code;
};

}  // namespace

absl::StatusOr<SoftmaxDesc> ResolveLinesBackward(const Request<SoftmaxDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(SoftmaxDesc resolved, ResolveReferenceBackward(request));
  const MemoryDesc& md = resolved.dst;
  if (resolved.diff_src != md || resolved.diff_dst != md)
    return Unimplemented("layouts of the tensors differ");
  if (!md.IsPlain() || !md.IsDense()) return Unimplemented("not plain and dense");
  if (md.ElementCount() == 0) return Unimplemented("nothing to compute");
  if (md.dim(resolved.axis) > kLongestLine) return Unimplemented("lines of 1 GiB and more");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateLinesBackward(
    const Request<SoftmaxDesc>& request) {
  const SoftmaxDesc& desc = request.desc;
  LineConfig config{.unit = VectorUnit::Of(request.facts.isa)};
  config.is_log = desc.algorithm == SoftmaxAlgorithm::kLogSoftmax;
  config.size = desc.dst.dim(desc.axis);
  config.stride = config.size == 1 ? 1 : desc.dst.stride(desc.axis);  // any stride fits one element
  ABSL_ASSIGN_OR_RETURN(auto code, jit::Compile<LineGenerator>(request.facts.name, config));
  return MakeDriven(BackwardInfoOf(request),
                    LineGradient{config, desc.dst.ElementCount(), std::move(code)});
}

}  // namespace tilewire::softmax
