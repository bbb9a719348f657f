// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/loop_count.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/layer_normalization/dense_rows.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layer_normalization/row_loops.h"
#include "engine/threading/ranges.h"

namespace tilewire::layer_normalization {
namespace {

constexpr int64_t kElementsPerTask = 16 * 1024;

struct RowArgs {
  const float* src;
  float* dst;
  const float *mean, *variance;        // of the rows, if they are given,
  float *found_mean, *found_variance;  // or if they are written
  const float *scale, *shift;          // if there are any
  const float* addend;                 // likewise
  float* sum;
  jit::LoopCount rows;
};

// From a row to the next, in bytes.
struct RowSteps {
  int64_t src, dst, addend, sum;
};

struct RowConfig {
  VectorUnit unit;
  int64_t size;  // of a row, >= 1
  float epsilon;
  bool given_statistics, writes_statistics, scale_shift, adds;
  RowSteps steps;
};

std::optional<RowSteps> RowStepsOf(const LayerNormalizationDesc& desc) {
  int64_t steps[4] = {};
  const MemoryDesc* const tensors[] = {&desc.src, &desc.dst, &desc.addend, &desc.sum};
  for (int i = 0; i < (HasAddend(desc) ? 4 : 2); ++i) {
    const std::optional<int64_t> step = RowStepOf(*tensors[i]);
    if (!step) return std::nullopt;
    steps[i] = *step;
  }
  return RowSteps{steps[0], steps[1], steps[2], steps[3]};
}

class RowGenerator final : public RowLoops {
 public:
  using Function = void (*)(const RowArgs*);
  RowGenerator(absl::string_view name, const RowConfig& config)
      : RowLoops(name, config.unit, config.size, /*tail_vector=*/8), config_(config) {}

 private:
  void Emit() override {
    EmitPointers();
    LoadTables();
    Xbyak::Label next_row;
    L(next_row);
    if (config_.given_statistics) {
      vbroadcastss(mean_, ptr[mean_at_]);
      vbroadcastss(factor_, ptr[variance_at_]);
    } else {
      EmitStatistics();
    }
    if (config_.writes_statistics) {
      vmovss(ptr[mean_at_], Xbyak::Xmm(mean_.getIdx()));
      vmovss(ptr[variance_at_], Xbyak::Xmm(factor_.getIdx()));
    }
    EmitFactor(factor_, config_.epsilon, x_);
    ForEachVector([this](int unroll, bool masked) { EmitResult(unroll, masked); });
    Advance();
    dec(rows_left_);
    jnz(next_row, T_NEAR);
    vzeroupper();
    ret();
    EmitTables();
  }

  void EmitPointers() {
    mov(src_, ptr[rdi + offsetof(RowArgs, src)]);
    mov(dst_, ptr[rdi + offsetof(RowArgs, dst)]);
    mov(scale_, ptr[rdi + offsetof(RowArgs, scale)]);
    mov(shift_, ptr[rdi + offsetof(RowArgs, shift)]);
    if (config_.given_statistics) {
      mov(mean_at_, ptr[rdi + offsetof(RowArgs, mean)]);
      mov(variance_at_, ptr[rdi + offsetof(RowArgs, variance)]);
    } else if (config_.writes_statistics) {
      mov(mean_at_, ptr[rdi + offsetof(RowArgs, found_mean)]);
      mov(variance_at_, ptr[rdi + offsetof(RowArgs, found_variance)]);
    } else if (config_.adds) {
      mov(addend_, ptr[rdi + offsetof(RowArgs, addend)]);
      mov(sum_, ptr[rdi + offsetof(RowArgs, sum)]);
    }
    mov(rows_left_, ptr[rdi + offsetof(RowArgs, rows)]);
  }

  // To the next row.
  void Advance() {
    add(src_, static_cast<int>(config_.steps.src));
    add(dst_, static_cast<int>(config_.steps.dst));
    if (config_.given_statistics || config_.writes_statistics) {
      add(mean_at_, sizeof(float));
      add(variance_at_, sizeof(float));
    } else if (config_.adds) {
      add(addend_, static_cast<int>(config_.steps.addend));
      add(sum_, static_cast<int>(config_.steps.sum));
    }
  }

  void EmitStatistics() {
    ClearSums(kUnroll);
    ForEachVector([this](int unroll, bool masked) {
      tail_.Load(x_, At(src_, unroll), masked);
      if (config_.adds) {
        tail_.Load(spare_vector_, At(addend_, unroll), masked);
        vaddps(x_, x_, spare_vector_);
        tail_.Store(At(sum_, unroll), x_, masked);
      }
      vaddps(Vector(unroll), Vector(unroll), x_);
    });
    CombineSums(0, mean_);
    ClearSums(kUnroll);
    ForEachVector([this](int unroll, bool masked) {
      tail_.Load(x_, At(source(), unroll), masked);
      vsubps(x_, x_, mean_);
      if (masked) tail_.ZeroOthers(x_);
      vfmadd231ps(Vector(unroll), x_, x_);
    });
    CombineSums(0, factor_);
  }

  // dst = (src - mean) * factor * scale + shift
  void EmitResult(int unroll, bool masked) {
    tail_.Load(x_, At(source(), unroll), masked);
    vsubps(x_, x_, mean_);
    vmulps(x_, x_, factor_);
    if (config_.scale_shift) {
      tail_.Load(spare_vector_, At(scale_, unroll), masked);
      tail_.Load(Vector(0), At(shift_, unroll), masked);
      vfmadd213ps(x_, spare_vector_, Vector(0));
    }
    tail_.Store(At(dst_, unroll), x_, masked);
  }

  // The elements that are normalized.
  const Xbyak::Reg64& source() const { return config_.adds ? sum_ : src_; }

  // Registers. Arguments arrive in rdi; vectors 0 to 3 are sums.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, scale_ = r8, shift_ = r9;
  const Xbyak::Reg64 mean_at_ = r10, variance_at_ = r11;  // where they are memory,
  const Xbyak::Reg64 addend_ = r10, sum_ = r11;           // and where they are not
  const Xbyak::Reg64 rows_left_ = rdi;
  const RowConfig config_;
  const Xbyak::Xmm x_ = Vector(4), spare_vector_ = Vector(5), mean_ = Vector(6);
  const Xbyak::Xmm factor_ = Vector(7);  // holds the variance at first
};

struct RowsDriver {
  void Run(const DrivenRun& run) const {
    const int64_t per_task = threading::ItemsAtOnce(kElementsPerTask, size);
    const int64_t per_call = even_rows ? per_task : 1;
    threading::ParallelForRanges(run.team, RowsOf(desc), per_task, [&](int64_t first, int64_t end) {
      for (int64_t row = first; row < end; row += per_call) {
        RowArgs row_args = ArgsOfRow(run.args, row);
        row_args.rows = std::min(per_call, end - row);
        generator->entry<RowGenerator::Function>()(&row_args);
      }
    });
  }
  size_t code_bytes() const { return generator->code_bytes(); }

  RowArgs ArgsOfRow(const ExecuteArgs& args, int64_t row) const {
    RowArgs row_args = {};
    row_args.src = args.Get<const float>(kArgSrc) + RowOffset(desc.src, row);
    row_args.dst = args.Get<float>(kArgDst) + RowOffset(desc.dst, row);
    if (WritesStatistics(desc)) {
      row_args.found_mean = args.Get<float>(kArgMean) + row;
      row_args.found_variance = args.Get<float>(kArgVariance) + row;
    } else if (desc.use_global_stats) {
      row_args.mean = args.Get<const float>(kArgMean) + row;
      row_args.variance = args.Get<const float>(kArgVariance) + row;
    }
    if (desc.use_scale_shift) {
      row_args.scale = args.Get<const float>(kArgWeights);
      row_args.shift = row_args.scale + size;
    }
    if (HasAddend(desc)) {
      row_args.addend = args.Get<const float>(kArgSrc1) + RowOffset(desc.addend, row);
      row_args.sum = args.Get<float>(kArgMultipleDst) + RowOffset(desc.sum, row);
    }
    return row_args;
  }

  LayerNormalizationDesc desc;
  int64_t size;    // of a row
  bool even_rows;  // all at one distance
  std::unique_ptr<const RowGenerator> generator;
};

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveRows(const Request<LayerNormalizationDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(LayerNormalizationDesc resolved, ResolveReference(request));
  ABSL_RETURN_IF_ERROR(
      RequireDenseRows({&resolved.src, &resolved.dst, &resolved.addend, &resolved.sum}));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(
    const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  const std::optional<RowSteps> steps = RowStepsOf(desc);
  const RowConfig config = {.unit = VectorUnit::Of(request.facts.isa),
                            .size = desc.src.dim(desc.src.rank() - 1),
                            .epsilon = desc.epsilon,
                            .given_statistics = desc.use_global_stats,
                            .writes_statistics = WritesStatistics(desc),
                            .scale_shift = desc.use_scale_shift,
                            .adds = HasAddend(desc),
                            .steps = steps.value_or(RowSteps{})};
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RowGenerator>(request.facts.name, config));
  return MakeDriven(InfoOf(request),
                    RowsDriver{desc, config.size, steps.has_value(), std::move(generator)});
}

}  // namespace tilewire::layer_normalization
