// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/jit/generator.h"
#include "engine/jit/tail_mask.h"
#include "engine/jit/vector_math.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layer_normalization/implementations.h"

namespace tilewire::layer_normalization {
namespace {

constexpr int64_t kElementsPerTask = 16 * 1024;

struct RowArgs {
  const float* src;
  float* dst;
  const float *mean, *variance;  // of the row, if they are given
  const float *scale, *shift;    // if there are any
};

struct RowConfig {
  VectorUnit unit;
  int64_t size;  // of a row, >= 1
  float epsilon;
  bool given_statistics, scale_shift;
};

class RowGenerator final : public jit::Generator {
 public:
  using Function = void (*)(const RowArgs*);
  RowGenerator(absl::string_view name, const RowConfig& config)
      : Generator(name),
        config_(config),
        math_(this, config.unit, rax, k1),
        tail_(this, config.unit, {.spare = at_, .opmask = k2, .vector = 8}) {}

 private:
  static constexpr int kUnroll = 4;

  void Emit() override {
    mov(src_, ptr[rdi + offsetof(RowArgs, src)]);
    mov(dst_, ptr[rdi + offsetof(RowArgs, dst)]);
    mov(scale_, ptr[rdi + offsetof(RowArgs, scale)]);
    mov(shift_, ptr[rdi + offsetof(RowArgs, shift)]);
    math_.LoadTable();
    if (TailLanes() != 0) tail_.Set(TailLanes());
    if (config_.given_statistics) {
      mov(at_, ptr[rdi + offsetof(RowArgs, mean)]);
      vbroadcastss(mean_, ptr[at_]);
      mov(at_, ptr[rdi + offsetof(RowArgs, variance)]);
      vbroadcastss(factor_, ptr[at_]);
    } else {
      EmitStatistics();
    }
    vaddps(factor_, factor_, math_.Constant(config_.epsilon));
    vsqrtps(factor_, factor_);
    math_.Load(x_, 1);
    vdivps(factor_, x_, factor_);
    ForEachVector([this](int unroll, bool masked) { EmitResult(unroll, masked); });
    vzeroupper();
    ret();
    math_.EmitTable();
    if (TailLanes() != 0) tail_.EmitTable();
  }

  void EmitStatistics() {
    ClearSums();
    ForEachVector([this](int unroll, bool masked) {
      Load(x_, src_, unroll, masked);
      vaddps(Vector(unroll), Vector(unroll), x_);
    });
    CombineSums(mean_);
    ClearSums();
    ForEachVector([this](int unroll, bool masked) {
      Load(x_, src_, unroll, masked);
      vsubps(x_, x_, mean_);
      if (masked) tail_.ZeroOthers(x_);
      vfmadd231ps(Vector(unroll), x_, x_);
    });
    CombineSums(factor_);
  }

  // dst = (src - mean) * factor * scale + shift
  void EmitResult(int unroll, bool masked) {
    Load(x_, src_, unroll, masked);
    vsubps(x_, x_, mean_);
    vmulps(x_, x_, factor_);
    if (config_.scale_shift) {
      Load(spare_vector_, scale_, unroll, masked);
      Load(Vector(0), shift_, unroll, masked);
      vfmadd213ps(x_, spare_vector_, Vector(0));
    }
    tail_.Store(ptr[dst_ + at_ + unroll * vector_bytes()], x_, masked);
  }

  // Calls `body` for every vector of a row, at_ holding the bytes to vector 0 of its group of four.
  template <typename Body>
  void ForEachVector(Body body) {
    const int64_t group = kUnroll * lanes(), rest = config_.size % group;
    const int64_t grouped_bytes = (config_.size - rest) * 4;
    xor_(at_, at_);
    if (grouped_bytes > 0) {
      Xbyak::Label next;
      L(next);
      for (int v = 0; v < kUnroll; ++v) body(v, false);
      add(at_, kUnroll * vector_bytes());
      cmp(at_, static_cast<int>(grouped_bytes));
      jl(next, T_NEAR);
    }
    const int vectors = static_cast<int>(rest / lanes());
    for (int v = 0; v < vectors; ++v) body(v, false);
    if (rest % lanes() != 0) body(vectors, true);
  }

  void ClearSums() {
    for (int v = 0; v < kUnroll; ++v) vxorps(Vector(v), Vector(v), Vector(v));
  }

  // to = the sum of all lanes of all sums, divided by size, in every lane.
  void CombineSums(const Xbyak::Xmm& to) {
    const Xbyak::Xmm sum = Vector(0), half = Vector(1);
    vaddps(sum, sum, Vector(1));
    vaddps(Vector(2), Vector(2), Vector(3));
    vaddps(sum, sum, Vector(2));
    config_.unit.FoldLanes(this, sum, half, [&] { vaddps(sum, sum, half); });
    math_.Load(half, static_cast<float>(config_.size));
    vdivps(to, sum, half);
  }

  void Load(const Xbyak::Xmm& to, const Xbyak::Reg64& base, int unroll, bool masked) {
    tail_.Load(to, ptr[base + at_ + unroll * vector_bytes()], masked);
  }

  int lanes() const { return config_.unit.lanes(); }
  int vector_bytes() const { return config_.unit.bytes(); }
  int TailLanes() const { return static_cast<int>(config_.size % lanes()); }
  Xbyak::Xmm Vector(int index) const { return config_.unit.Vector(index); }

  // Registers. Arguments arrive in rdi; vectors 0 to 3 are sums.
  const Xbyak::Reg64 src_ = rsi, dst_ = rdx, scale_ = r8, shift_ = r9, at_ = rcx;
  const RowConfig config_;
  jit::VectorMath math_;
  jit::TailMask tail_;
  const Xbyak::Xmm x_ = Vector(4), spare_vector_ = Vector(5), mean_ = Vector(6);
  const Xbyak::Xmm factor_ = Vector(7);  // holds the variance at first
};

// Immutable.
class Rows final : public Primitive {
 public:
  Rows(PrimitiveInfo primitive_info, const LayerNormalizationDesc& desc,
       std::unique_ptr<const RowGenerator> generator)
      : Primitive(std::move(primitive_info)),
        desc_(desc),
        size_(desc.src.dim(desc.src.rank() - 1)),
        rows_(RowsOf(desc)),
        rows_per_task_(std::max<int64_t>(1, kElementsPerTask / size_)),
        generator_(std::move(generator)) {}

 private:
  void Run(const ExecuteArgs& args, std::byte*, const threading::Team& team) const override {
    const auto* weights = desc_.use_scale_shift ? args.Get<const float>(kArgWeights) : nullptr;
    team.ParallelFor(DivUp(rows_, rows_per_task_), [&](int64_t task) {
      const int64_t end = std::min(rows_, (task + 1) * rows_per_task_);
      for (int64_t row = task * rows_per_task_; row < end; ++row) {
        RowArgs row_args = {};
        row_args.src = args.Get<const float>(kArgSrc) + Offset(desc_.src, row);
        row_args.dst = args.Get<float>(kArgDst) + Offset(desc_.dst, row);
        if (desc_.use_global_stats) {
          row_args.mean = args.Get<const float>(kArgMean) + row;
          row_args.variance = args.Get<const float>(kArgVariance) + row;
        }
        if (weights != nullptr) {
          row_args.scale = weights;
          row_args.shift = weights + size_;
        }
        generator_->entry<RowGenerator::Function>()(&row_args);
      }
    });
  }

  // Of the first element of a row, counted in row-major order.
  static int64_t Offset(const MemoryDesc& md, int64_t row) {
    int64_t offset = md.offset0();
    for (int d = md.rank() - 2; d >= 0; --d) {
      offset += row % md.dim(d) * md.stride(d);
      row /= md.dim(d);
    }
    return offset;
  }

  const LayerNormalizationDesc desc_;
  const int64_t size_, rows_, rows_per_task_;
  const std::unique_ptr<const RowGenerator> generator_;
};

}  // namespace

absl::StatusOr<LayerNormalizationDesc> ResolveRows(const LayerNormalizationDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts& facts) {
  ABSL_ASSIGN_OR_RETURN(LayerNormalizationDesc resolved, ResolveReference(desc, attributes, facts));
  const int axis = desc.src.rank() - 1;
  for (const MemoryDesc* md : {&resolved.src, &resolved.dst}) {
    if (!md->IsPlain() || (md->dim(axis) > 1 && md->stride(axis) != 1)) {
      return absl::UnimplementedError(
          absl::StrCat(md->ToString(), ": elements of a row do not follow each other"));
    }
  }
  constexpr int64_t kLongest = int64_t{1} << 28;
  if (desc.src.dim(axis) < 1 || desc.src.dim(axis) > kLongest) {
    return absl::UnimplementedError(absl::StrCat("takes rows of 1 to ", kLongest));
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const LayerNormalizationDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts) {
  const RowConfig config = {VectorUnit::Of(facts.isa), desc.src.dim(desc.src.rank() - 1),
                            desc.epsilon, desc.use_global_stats, desc.use_scale_shift};
  ABSL_ASSIGN_OR_RETURN(auto generator, jit::Compile<RowGenerator>(facts.name, config));
  return std::make_unique<Rows>(WithCode(InfoOf(desc, attributes, facts), *generator), desc,
                                std::move(generator));
}

}  // namespace tilewire::layer_normalization
