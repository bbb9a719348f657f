// SPDX-License-Identifier: Apache-2.0
//
// With x - mean = d, r = 1 / sqrt(variance + epsilon) and g = scale dy, a first pass over a row
// sums g and g d, and a second one writes
//
//   diff_src = r (g - mean(g) - d r mean(g d) r)
//
// and r g alone where statistics were given, which needs no first pass. The second pass also adds
// dy d r and dy to a line for the gradients of scale and shift. Each piece of rows has a line of
// its own; the lines are added in the order of the pieces, in double, so that bits do not depend on
// threads.
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/loop_count.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/layer_normalization/dense_rows.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layer_normalization/row_loops.h"
#include "engine/threading/ranges.h"

namespace tilewire::layer_normalization {
namespace {

constexpr int64_t kLeastRows = 64;    // of a piece
constexpr int64_t kMostPieces = 256;  // which bounds the lines
constexpr int64_t kLineAlignment = 16;
constexpr int64_t kColumnsAtOnce = 512;

struct GradientArgs {
  const float *src, *diff_dst;
  float* diff_src;
  const float *mean, *variance, *scale;
  float* line;  // the gradients of scale, and after them those of shift
  jit::LoopCount rows;
};

// From a row to the next, in bytes.
struct GradientSteps {
  int64_t src, diff_dst, diff_src;
};

struct GradientConfig {
  VectorUnit unit;
  int64_t size;  // of a row, >= 1
  float epsilon;
  bool given_statistics, scales, sums_parameters;
  GradientSteps steps;

  // Floats of half a line: whole vectors.
  int64_t line() const { return RoundUp(size, kLineAlignment); }
};

class GradientGenerator final : public RowLoops {
 public:
  using Function = void (*)(const GradientArgs*);
  GradientGenerator(absl::string_view name, const GradientConfig& config)
      : RowLoops(name, config.unit, config.size, /*tail_vector=*/15), config_(config) {}

 private:
  void Emit() override {
    Preamble();
    EmitPointers();
    LoadTables();
    Xbyak::Label next_row;
    L(next_row);
    EmitStatistics();
    if (!config_.given_statistics) EmitMeans();
    ForEachVector([this](int unroll, bool masked) { EmitResult(unroll, masked); });
    Advance();
    dec(rows_left_);
    jnz(next_row, T_NEAR);
    Postamble();
    EmitTables();
  }

  void EmitPointers() {
    mov(src_, ptr[rdi + offsetof(GradientArgs, src)]);
    mov(diff_dst_, ptr[rdi + offsetof(GradientArgs, diff_dst)]);
    mov(diff_src_, ptr[rdi + offsetof(GradientArgs, diff_src)]);
    mov(mean_at_, ptr[rdi + offsetof(GradientArgs, mean)]);
    mov(variance_at_, ptr[rdi + offsetof(GradientArgs, variance)]);
    mov(scale_, ptr[rdi + offsetof(GradientArgs, scale)]);
    mov(line_, ptr[rdi + offsetof(GradientArgs, line)]);
    mov(rows_left_, ptr[rdi + offsetof(GradientArgs, rows)]);
  }

  void Advance() {
    add(src_, static_cast<int>(config_.steps.src));
    add(diff_dst_, static_cast<int>(config_.steps.diff_dst));
    add(diff_src_, static_cast<int>(config_.steps.diff_src));
    add(mean_at_, sizeof(float));
    add(variance_at_, sizeof(float));
  }

  // mean_, and r in root_.
  void EmitStatistics() {
    vbroadcastss(mean_, ptr[mean_at_]);
    vbroadcastss(root_, ptr[variance_at_]);
    EmitFactor(root_, config_.epsilon, x_);
  }

  // level_ = mean(g) and share_ = mean(g d) r.
  void EmitMeans() {
    ClearSums(2 * kUnroll);
    ForEachVector([this](int unroll, bool masked) {
      EmitTerms(unroll, masked);
      vaddps(Vector(unroll), Vector(unroll), g_);
      vfmadd231ps(Vector(kUnroll + unroll), g_, x_);
    });
    CombineSums(0, level_);
    CombineSums(kUnroll, share_);
    vmulps(share_, share_, root_);
  }

  // g_ = g and x_ = d; a masked g is 0 in the other lanes.
  void EmitTerms(int unroll, bool masked) {
    tail_.Load(x_, At(src_, unroll), masked);
    vsubps(x_, x_, mean_);
    tail_.Load(g_, At(diff_dst_, unroll), masked);
    if (config_.scales) EmitScale(unroll, masked);
  }

  void EmitScale(int unroll, bool masked) {
    tail_.Load(other_, At(scale_, unroll), masked);
    vmulps(g_, g_, other_);
  }

  void EmitResult(int unroll, bool masked) {
    tail_.Load(g_, At(diff_dst_, unroll), masked);
    if (config_.sums_parameters || !config_.given_statistics) {
      tail_.Load(x_, At(src_, unroll), masked);
      vsubps(x_, x_, mean_);
      vmulps(x_, x_, root_);
    }
    if (config_.sums_parameters) {
      AddToLine(unroll, 0, [this] { vfmadd231ps(other_, g_, x_); });
      AddToLine(unroll, config_.line(), [this] { vaddps(other_, other_, g_); });
    }
    if (config_.scales) EmitScale(unroll, masked);
    if (!config_.given_statistics) {
      vsubps(g_, g_, level_);
      vfnmadd231ps(g_, x_, share_);
    }
    vmulps(g_, g_, root_);
    tail_.Store(At(diff_src_, unroll), g_, masked);
  }

  // Adds to the vector of line_ that stands `element` floats behind.
  template <typename Add>
  void AddToLine(int unroll, int64_t element, Add add) {
    const Xbyak::Address at =
        ptr[line_ + at_ + static_cast<int>(element * 4) + unroll * unit_.bytes()];
    vmovups(other_, at);
    add();
    vmovups(at, other_);
  }

  // Registers. Arguments arrive in rdi; vectors 0 to 7 are sums in the first pass, 15 the tail's.
  const Xbyak::Reg64 src_ = rsi, diff_dst_ = rdx, diff_src_ = r8, scale_ = r9;
  const Xbyak::Reg64 mean_at_ = r10, variance_at_ = r11, line_ = rbx, rows_left_ = rdi;
  const GradientConfig config_;
  const Xbyak::Xmm x_ = Vector(8), g_ = Vector(9), other_ = Vector(10), mean_ = Vector(11);
  const Xbyak::Xmm root_ = Vector(12), level_ = Vector(13), share_ = Vector(14);
};

struct GradientDriver {
  void Run(const DrivenRun& run) const {
    auto* const lines = reinterpret_cast<float*>(run.scratchpad);
    const int64_t rows = RowsOf(desc), per_piece = RowsOfPiece(desc);
    threading::ParallelForRanges(run.team, rows, per_piece, [&](int64_t first, int64_t end) {
      float* line = nullptr;
      if (WritesParameterGradients(desc)) {
        line = lines + first / per_piece * 2 * line_floats;
        std::fill_n(line, 2 * line_floats, 0.0f);
      }
      const int64_t per_call = even_rows ? end - first : 1;
      for (int64_t row = first; row < end; row += per_call) {
        const GradientArgs args = ArgsOfRow(run.args, row, line, per_call);
        generator->entry<GradientGenerator::Function>()(&args);
      }
    });
    if (!WritesParameterGradients(desc)) return;
    const int64_t pieces = DivUp(rows, per_piece);
    auto* const diff_weights = run.args.Get<float>(kArgDiffWeights);
    threading::ParallelForRanges(run.team, size, kColumnsAtOnce, [&](int64_t first, int64_t end) {
      AddLines(lines, pieces, {first, end}, diff_weights);
      AddLines(lines + line_floats, pieces, {first, end}, diff_weights + size);
    });
  }
  size_t code_bytes() const { return generator->code_bytes(); }

  // Pieces follow from the shape alone.
  static int64_t RowsOfPiece(const LayerNormalizationDesc& desc) {
    return std::max(kLeastRows, DivUp(RowsOf(desc), kMostPieces));
  }

  struct Columns {
    int64_t first, end;
  };
  void AddLines(const float* line, int64_t pieces, const Columns& columns, float* to) const {
    for (int64_t first = columns.first; first < columns.end; first += kLineAlignment) {
      double sums[kLineAlignment] = {};
      for (int64_t piece = 0; piece < pieces; ++piece) {
        const float* const from = line + piece * 2 * line_floats + first;
        for (int64_t i = 0; i < kLineAlignment; ++i) sums[i] += from[i];
      }
      const int64_t count = std::min(kLineAlignment, columns.end - first);
      for (int64_t i = 0; i < count; ++i) to[first + i] = static_cast<float>(sums[i]);
    }
  }

  GradientArgs ArgsOfRow(const ExecuteArgs& args, int64_t row, float* line, int64_t rows) const {
    return {.src = args.Get<const float>(kArgSrc) + RowOffset(desc.src, row),
            .diff_dst = args.Get<const float>(kArgDiffDst) + RowOffset(desc.diff_dst, row),
            .diff_src = args.Get<float>(kArgDiffSrc) + RowOffset(desc.diff_src, row),
            .mean = args.Get<const float>(kArgMean) + row,
            .variance = args.Get<const float>(kArgVariance) + row,
            .scale = desc.use_scale_shift ? args.Get<const float>(kArgWeights) : nullptr,
            .line = line,
            .rows = rows};
  }

  LayerNormalizationDesc desc;
  int64_t size, line_floats;  // of a row, and of half a line
  bool even_rows;             // all at one distance
  std::unique_ptr<const GradientGenerator> generator;
};

std::optional<GradientSteps> GradientStepsOf(const LayerNormalizationDesc& desc) {
  const std::optional<int64_t> src = RowStepOf(desc.src), diff_dst = RowStepOf(desc.diff_dst),
                               diff_src = RowStepOf(desc.diff_src);
  if (!src || !diff_dst || !diff_src) return std::nullopt;
  return GradientSteps{*src, *diff_dst, *diff_src};
}

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveRowsBackward(
    const Request<LayerNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LayerNormalizationDesc resolved, ResolveReferenceBackward(request));
  ABSL_RETURN_IF_ERROR(RequireDenseRows({&resolved.src, &resolved.diff_dst, &resolved.diff_src}));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRowsBackward(
    const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  const std::optional<GradientSteps> steps = GradientStepsOf(desc);
  const GradientConfig config = {.unit = VectorUnit::Of(request.facts.isa),
                                 .size = desc.src.dim(desc.src.rank() - 1),
                                 .epsilon = desc.epsilon,
                                 .given_statistics = desc.use_global_stats,
                                 .scales = desc.use_scale_shift,
                                 .sums_parameters = WritesParameterGradients(desc),
                                 .steps = steps.value_or(GradientSteps{})};
  ABSL_ASSIGN_OR_RETURN(auto generator,
                        jit::Compile<GradientGenerator>(request.facts.name, config));
  PrimitiveInfo info = BackwardInfoOf(request);
  if (config.sums_parameters) {
    const int64_t rows = std::max<int64_t>(1, RowsOf(desc));
    const int64_t pieces = DivUp(rows, GradientDriver::RowsOfPiece(desc));
    info.scratchpad_bytes = pieces * 2 * config.line() * static_cast<int64_t>(sizeof(float));
  }
  return MakeDriven(std::move(info), GradientDriver{desc, config.size, config.line(),
                                                    steps.has_value(), std::move(generator)});
}

}  // namespace tilewire::layer_normalization
