// SPDX-License-Identifier: Apache-2.0
//
// The gradient of src0 is a function of the elements at one index, that of src1 a sum over what is
// broadcast (sum_plan.h), whose pass writes both where it can.
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/types/span.h"
#include "engine/base/status_macros.h"
#include "engine/jit/vector_math.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/memory/zero_padding.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/binary/sum_generator.h"
#include "engine/primitives/binary/sum_plan.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"

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

struct GradientDriver {
  // diff_src1 first: diff_src0 may be the memory of diff_dst.
  void Run(const DrivenRun& run) const {
    const auto *dy = run.First<const float>(kArgDiffDst), *x = run.First<const float>(kArgSrc),
               *y = run.First<const float>(kArgSrc1);
    if (second) {
      second->Run(sums->entry<SumGenerator::Function>(),
                  {dy, x, y, run.First<float>(kArgDiffSrc), run.First<float>(kArgDiffSrc1)},
                  run.scratchpad, run.team);
      ZeroPadding(run.primitive.Desc(kArgDiffSrc1), run.args.Find(kArgDiffSrc1));
    }
    if (first && run.primitive.Desc(kArgDiffSrc).ElementCount() != 0) {
      std::vector<const void*> operands = {dy};
      if (ReadsFirst(algorithm)) operands.push_back(x);
      if (ReadsSecond(algorithm)) operands.push_back(y);
      first->Run(code->entry<ElementwiseGenerator::Function>(), run.First<float>(kArgDiffSrc),
                 operands, run.team);
    }
    if (run.primitive.Writes(kArgDiffSrc))
      ZeroPadding(run.primitive.Desc(kArgDiffSrc), run.args.Find(kArgDiffSrc));
  }
  size_t code_bytes() const {
    return (code == nullptr ? 0 : code->code_bytes()) + (sums == nullptr ? 0 : sums->code_bytes());
  }

  BinaryAlgorithm algorithm;
  std::optional<SumPlan> second;  // none where src1's is not computed, and its code
  std::unique_ptr<const SumGenerator> sums;
  std::optional<ElementwisePlan> first;  // likewise, or where `second` writes src0's
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

// A driver without code.
absl::StatusOr<GradientDriver> PlansOf(const BinaryDesc& desc, cpu::Isa isa) {
  GradientDriver driver{desc.algorithm};
  if (!desc.diff_src1.IsZero()) {
    if (SumsPaddedQuotients(desc)) return Unimplemented("sums no quotients of padded channels");
    ABSL_ASSIGN_OR_RETURN(driver.second, SumPlan::Create(desc));
    if (driver.second->writes_first()) return driver;
  }
  if (!desc.diff_src0.IsZero()) {
    ABSL_ASSIGN_OR_RETURN(driver.first, FirstPlanOf(desc, isa));
  }
  return driver;
}

}  // namespace

absl::StatusOr<BinaryDesc> ResolveRowsBackward(const Request<BinaryDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(BinaryDesc resolved, ResolveReferenceBackward(request));
  ABSL_RETURN_IF_ERROR(PlansOf(resolved, request.facts.isa).status());
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateRowsBackward(const Request<BinaryDesc>& request) {
  const auto& [name, isa, traits] = request.facts;
  ABSL_ASSIGN_OR_RETURN(GradientDriver driver, PlansOf(request.desc, isa));
  if (driver.second) {
    const SumConfig config = driver.second->Config(VectorUnit::Of(isa));
    ABSL_ASSIGN_OR_RETURN(driver.sums, jit::Compile<SumGenerator>(name, config));
  }
  if (driver.first) {
    const ElementwiseConfig config = driver.first->Config({});
    ABSL_ASSIGN_OR_RETURN(driver.code,
                          jit::Compile<SlopeGenerator>(name, config, driver.algorithm));
  }
  PrimitiveInfo info = BackwardInfoOf(request);
  if (driver.second) info.scratchpad_bytes = driver.second->scratchpad_bytes();
  return MakeDriven(std::move(info), std::move(driver));
}

}  // namespace tilewire::binary
