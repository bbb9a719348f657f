// SPDX-License-Identifier: Apache-2.0
//
// The gradient of src0 is a function of the elements at one index, as generated code. That of src1
// is a sum over what is broadcast: plain loops, in double, in which each element of diff_src1, or a
// few neighbours, has one owner, so that bits do not depend on threads.
#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_math.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/kernels/moves/strided_loops.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/threading/stop.h"

namespace tilewire::binary {
namespace {

// The sources that the derivative by src0 depends on.
bool ReadsFirst(BinaryAlgorithm algorithm) {
  return algorithm == BinaryAlgorithm::kMax || algorithm == BinaryAlgorithm::kMin ||
         algorithm == BinaryAlgorithm::kPRelu;
}
bool ReadsSecond(BinaryAlgorithm algorithm) {
  return algorithm != BinaryAlgorithm::kAdd && algorithm != BinaryAlgorithm::kSub;
}

// dy times the derivative by src0; operands are dy and the sources that are read.
class SlopeGenerator final : public ElementwiseGenerator {
 public:
  SlopeGenerator(absl::string_view name, const ElementwiseConfig& config, BinaryAlgorithm algorithm)
      : ElementwiseGenerator(name, config),
        algorithm_(algorithm),
        math_(this, config.unit, rax, spare_mask_) {}

 private:
  using Predicate = jit::VectorMath::Predicate;

  void EmitConstants() override {
    vxorps(zero_, zero_, zero_);
    unit().Broadcast(this, one_, 1, rax);
    unit().Broadcast(this, half_, 0.5f, rax);
  }

  void EmitFunction(const Xbyak::Xmm& value, absl::Span<const Xbyak::Xmm> others,
                    const Xbyak::Xmm& slope) override {
    switch (algorithm_) {
      case BinaryAlgorithm::kAdd:
      case BinaryAlgorithm::kSub:
        return;
      case BinaryAlgorithm::kDiv:
        return vdivps(value, value, others[0]);
      case BinaryAlgorithm::kMul:
        return Multiply(value, others[0]);
      case BinaryAlgorithm::kPRelu:
        vmovaps(slope, others[1]);
        math_.TakeWhere(slope, others[0], Predicate::kGreater, zero_, one_, spare_);
        return Multiply(value, slope);
      default:
        EmitShare(slope, others[0], others[1]);
        return Multiply(value, slope);
    }
  }

  // 1 where x is taken, 1/2 where both are equal; a NaN is taken.
  void EmitShare(const Xbyak::Xmm& slope, const Xbyak::Xmm& x, const Xbyak::Xmm& y) {
    const bool is_max = algorithm_ == BinaryAlgorithm::kMax;
    vmovaps(slope, zero_);
    math_.TakeWhere(slope, x, is_max ? Predicate::kGreater : Predicate::kLess, y, one_, spare_);
    math_.TakeWhere(slope, x, Predicate::kEqual, y, half_, spare_);
    math_.TakeWhere(slope, x, Predicate::kUnordered, x, one_, spare_);
  }

  // dy times a slope, and 0 where that is 0, whatever dy is.
  void Multiply(const Xbyak::Xmm& value, const Xbyak::Xmm& slope) {
    vmulps(value, value, slope);
    math_.TakeWhere(value, slope, Predicate::kEqual, zero_, zero_, spare_);
  }

  const BinaryAlgorithm algorithm_;
  jit::VectorMath math_;
  // Registers that neither operands nor slots take, as dy is never broadcast.
  const Xbyak::Xmm one_ = Vector(kConstants[0]), zero_ = Vector(kConstants[1]);
  const Xbyak::Xmm half_ = Vector(8), spare_ = Vector(14);
};

// dy times the derivative by src1.
template <BinaryAlgorithm kAlgorithm>
double TermOf(double dy, double x, double y) {
  const auto times = [dy](double slope) { return slope == 0 ? 0 : slope * dy; };
  if constexpr (kAlgorithm == BinaryAlgorithm::kAdd) return dy;
  if constexpr (kAlgorithm == BinaryAlgorithm::kSub) return -dy;
  if constexpr (kAlgorithm == BinaryAlgorithm::kMul) return times(x);
  if constexpr (kAlgorithm == BinaryAlgorithm::kDiv) return times(-x / (y * y));
  if constexpr (kAlgorithm == BinaryAlgorithm::kPRelu) return x > 0 ? 0 : times(x);
  if (x == y) return 0.5 * dy;
  const bool takes_x = std::isnan(x) || (kAlgorithm == BinaryAlgorithm::kMax ? x > y : x < y);
  return takes_x ? 0 : dy;
}

// Immutable.
class SecondGradient {
 public:
  SecondGradient(const std::vector<StridedLoop>& loops, int64_t results) {
    if (!loops.empty()) inner_ = loops.back();
    for (size_t i = 0; i + 1 < loops.size(); ++i)
      (IsKept(loops[i]) ? kept_ : summed_).push_back(loops[i]);
    for (const StridedLoop& loop : kept_) owners_ *= loop.count;
    if (IsKept(inner_)) owners_ *= DivUp(inner_.count, kLanes);
    for (const StridedLoop& loop : loops) is_empty_ |= loop.count == 0;
    if (results == 0) owners_ = 0;  // even of what the strides of diff_src1 share
  }

  static absl::StatusOr<std::vector<StridedLoop>> LoopsOf(const BinaryDesc& desc) {
    return LoopsOver({&desc.diff_dst, &desc.src0, &desc.src1, &desc.diff_src1});
  }

  struct Pointers {
    const float *dy, *x, *y;
    float* to;
  };
  template <BinaryAlgorithm kAlgorithm>
  void Run(const Pointers& first, const threading::Team& team) const {
    team.ParallelFor(owners_, [&](int64_t owner) {
      const int64_t parts = IsKept(inner_) ? DivUp(inner_.count, kLanes) : 1;
      Pointers at = first;
      int64_t index = owner / parts;
      for (auto loop = kept_.rbegin(); loop != kept_.rend(); ++loop) {
        at = Moved(at, *loop, index % loop->count);
        index /= loop->count;
      }
      const int64_t column = owner % parts * kLanes;
      std::array<double, kLanes> sums = {};
      if (!IsKept(inner_)) {
        AddBoxes(summed_, at, [&](const Pointers& run) { AddRun<kAlgorithm>(run, sums); });
        double sum = 0;
        for (double lane : sums) sum += lane;
        *at.to = static_cast<float>(sum);
        return;
      }
      at = Moved(at, inner_, column);
      const int64_t count = std::min(kLanes, inner_.count - column);
      AddBoxes(summed_, at, [&](const Pointers& run) { AddColumns<kAlgorithm>(run, count, sums); });
      for (int64_t i = 0; i < count; ++i)
        at.to[i * inner_.strides[kTo]] = static_cast<float>(sums[i]);
    });
  }

 private:
  static constexpr int64_t kLanes = 32;  // columns, or partial sums of a run
  enum Tensor { kDy, kX, kY, kTo };

  static bool IsKept(const StridedLoop& loop) {
    return !loop.strides.empty() && loop.strides[kTo] != 0;
  }

  static Pointers Moved(const Pointers& from, const StridedLoop& loop, int64_t steps) {
    return {from.dy + steps * loop.strides[kDy], from.x + steps * loop.strides[kX],
            from.y + steps * loop.strides[kY], from.to + steps * loop.strides[kTo]};
  }

  template <typename Add>
  void AddBoxes(absl::Span<const StridedLoop> loops, const Pointers& at, const Add& add) const {
    if (is_empty_) return;  // of what may be many boxes
    if (loops.empty()) return add(at);
    for (int64_t i = 0; i < loops[0].count && !threading::Stopped(); ++i)
      AddBoxes(loops.subspan(1), Moved(at, loops[0], i), add);
  }

  template <BinaryAlgorithm kAlgorithm>
  void AddRun(const Pointers& run, std::array<double, kLanes>& sums) const {
    const int64_t dy = inner_.strides.empty() ? 0 : inner_.strides[kDy];
    const int64_t x = inner_.strides.empty() ? 0 : inner_.strides[kX];
    for (int64_t first = 0; first < inner_.count; first += kLanes) {
      const int64_t count = std::min(kLanes, inner_.count - first);
      const float *const dys = run.dy + first * dy, *const xs = run.x + first * x;
      if (dy == 1 && x == 1) {
        for (int64_t i = 0; i < count; ++i) sums[i] += TermOf<kAlgorithm>(dys[i], xs[i], *run.y);
      } else {
        for (int64_t i = 0; i < count; ++i)
          sums[i] += TermOf<kAlgorithm>(dys[i * dy], xs[i * x], *run.y);
      }
    }
  }

  template <BinaryAlgorithm kAlgorithm>
  void AddColumns(const Pointers& run, int64_t count, std::array<double, kLanes>& sums) const {
    const auto& strides = inner_.strides;
    if (strides[kDy] == 1 && strides[kX] == 1 && strides[kY] == 1) {
      for (int64_t i = 0; i < count; ++i)
        sums[i] += TermOf<kAlgorithm>(run.dy[i], run.x[i], run.y[i]);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      sums[i] += TermOf<kAlgorithm>(run.dy[i * strides[kDy]], run.x[i * strides[kX]],
                                    run.y[i * strides[kY]]);
  }

  StridedLoop inner_;
  std::vector<StridedLoop> kept_, summed_;  // around it, outermost first
  int64_t owners_ = 1;
  bool is_empty_ = false;  // nothing is summed
};

struct GradientDriver {
  // diff_src1 first: diff_src0 may be the memory of diff_dst.
  void Run(const DrivenRun& run) const {
    const auto *dy = run.First<const float>(kArgDiffDst), *x = run.First<const float>(kArgSrc),
               *y = run.First<const float>(kArgSrc1);
    if (second) {
      RunSecond({dy, x, y, run.First<float>(kArgDiffSrc1)}, run.team);
      ZeroPadding(run.primitive.Desc(kArgDiffSrc1), run.args.Find(kArgDiffSrc1));
    }
    if (!first || run.primitive.Desc(kArgDiffSrc).ElementCount() == 0) return;
    std::vector<const void*> operands = {dy};
    if (ReadsFirst(algorithm)) operands.push_back(x);
    if (ReadsSecond(algorithm)) operands.push_back(y);
    first->Run(code->entry<ElementwiseGenerator::Function>(), run.First<float>(kArgDiffSrc),
               operands, run.team);
    ZeroPadding(run.primitive.Desc(kArgDiffSrc), run.args.Find(kArgDiffSrc));
  }
  size_t code_bytes() const { return code == nullptr ? 0 : code->code_bytes(); }

  void RunSecond(const SecondGradient::Pointers& at, const threading::Team& team) const {
    switch (algorithm) {
      case BinaryAlgorithm::kAdd:
        return second->Run<BinaryAlgorithm::kAdd>(at, team);
      case BinaryAlgorithm::kSub:
        return second->Run<BinaryAlgorithm::kSub>(at, team);
      case BinaryAlgorithm::kMul:
        return second->Run<BinaryAlgorithm::kMul>(at, team);
      case BinaryAlgorithm::kDiv:
        return second->Run<BinaryAlgorithm::kDiv>(at, team);
      case BinaryAlgorithm::kPRelu:
        return second->Run<BinaryAlgorithm::kPRelu>(at, team);
      case BinaryAlgorithm::kMax:
        return second->Run<BinaryAlgorithm::kMax>(at, team);
      default:
        return second->Run<BinaryAlgorithm::kMin>(at, team);
    }
  }

  BinaryAlgorithm algorithm;
  std::optional<SecondGradient> second;  // none where src1's is not computed
  std::optional<ElementwisePlan> first;  // likewise, and its code
  std::unique_ptr<const SlopeGenerator> code;
};

absl::StatusOr<ElementwisePlan> FirstPlanOf(const BinaryDesc& desc, cpu::Isa isa) {
  std::vector<const MemoryDesc*> tensors = {&desc.diff_src0, &desc.diff_dst};
  if (ReadsFirst(desc.algorithm)) tensors.push_back(&desc.src0);
  if (ReadsSecond(desc.algorithm)) tensors.push_back(&desc.src1);
  return ElementwisePlan::Create(tensors, VectorUnit::Of(isa));
}

// Padding of src0 that is summed over adds 0, but as a quotient of zeros.
bool SumsPaddedQuotients(const BinaryDesc& desc) {
  if (desc.algorithm != BinaryAlgorithm::kDiv) return false;
  for (int d = 0; d < desc.src0.rank(); ++d) {
    if (desc.src1.dim(d) == 1 && desc.diff_dst.padded_dims()[d] != desc.src0.dim(d)) return true;
  }
  return false;
}

}  // namespace

absl::StatusOr<BinaryDesc> ResolveRowsBackward(const Request<BinaryDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BinaryDesc resolved, ResolveReferenceBackward(request));
  if (!resolved.diff_src0.IsZero())
    ABSL_RETURN_IF_ERROR(FirstPlanOf(resolved, request.facts.isa).status());
  if (resolved.diff_src1.IsZero()) return resolved;
  ABSL_RETURN_IF_ERROR(SecondGradient::LoopsOf(resolved).status());
  if (SumsPaddedQuotients(resolved)) return Unimplemented("sums no quotients of padded channels");
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRowsBackward(const Request<BinaryDesc>& request) {
  const BinaryDesc& desc = request.desc;
  GradientDriver driver{desc.algorithm};
  if (!desc.diff_src1.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(const auto loops, SecondGradient::LoopsOf(desc));
    driver.second.emplace(loops, desc.diff_src1.ElementCount());
  }
  if (!desc.diff_src0.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(driver.first, FirstPlanOf(desc, request.facts.isa));
    ABSL_ASSIGN_OR_RETURN(
        driver.code,
        jit::Compile<SlopeGenerator>(request.facts.name, driver.first->Config({}), desc.algorithm));
  }
  return MakeDriven(BackwardInfoOf(request), std::move(driver));
}

}  // namespace tilewire::binary
