// SPDX-License-Identifier: Apache-2.0
#include "engine/lowering/weighted/integer_fusion.h"

#include "engine/base/status_macros.h"

namespace tilewire::lowering {
namespace {

using functions::EltwiseAlgorithm;
using functions::EltwiseOp;
using network::FusedStep;
using network::QuantizationParams;

// The function g with g(x * unit) = f(x) * unit for `op` = f; nullopt where there is none.
std::optional<EltwiseOp> InUnits(EltwiseOp op, float unit) {
  switch (op.function) {
    case EltwiseAlgorithm::kRelu:
    case EltwiseAlgorithm::kAbs:
      return op;
    case EltwiseAlgorithm::kBoundedRelu:
      op.alpha *= unit;
      return op;
    case EltwiseAlgorithm::kClip:
      op.alpha *= unit;
      op.beta *= unit;
      return op;
    case EltwiseAlgorithm::kLinear:
      op.beta *= unit;
      return op;
    default:
      return std::nullopt;
  }
}

// Builds the chain of post-ops that follows the scaled sums.
class PostOpChain {
 public:
  PostOpChain(const IntegerTerms& terms, IntegerFusion* fusion) : terms_(terms), fusion_(*fusion) {
    for (const FusedStep& step : terms.steps) {
      commutes_ = commutes_ && (step.kind == FusedStep::Kind::kSum || InUnits(step.activation, 1));
    }
    step_size_ = terms.dst ? terms.dst->scale : 1;
    unit_ = commutes_ ? 1 / step_size_ : 1;
  }

  // The chain works on the real numbers times this: 1 / d, or 1.
  float unit() const { return unit_; }
  // The amount that the bias adds for the chain, in the chain's numbers.
  float shift() const { return shift_; }

  absl::Status Build() {
    for (const FusedStep& step : terms_.steps) {
      if (step.kind == FusedStep::Kind::kSum) {
        ABSL_RETURN_IF_ERROR(AppendSum(step));
      } else {
        const EltwiseOp op = commutes_ ? *InUnits(step.activation, unit_) : step.activation;
        ABSL_RETURN_IF_ERROR(Append(EltwisePostOp{op}));
      }
    }
    const float zero = terms_.dst ? static_cast<float>(terms_.dst->zero_point) : 0;
    if (commutes_) return AppendShift(zero);
    return AppendLinear(1 / step_size_, zero);
  }

 private:
  absl::Status Append(const PostOp& op) { return fusion_.attributes.post_ops.Append(op); }

  absl::Status AppendLinear(float alpha, float beta) {
    if (alpha == 1 && beta == 0) return absl::OkStatus();
    return Append(EltwisePostOp{{EltwiseAlgorithm::kLinear, alpha, beta}});
  }

  // The bias takes what comes before any post-op.
  absl::Status AppendShift(float shift) {
    if (!fusion_.attributes.post_ops.empty()) return AppendLinear(1, shift);
    shift_ += shift;
    return absl::OkStatus();
  }

  absl::Status AppendSum(const FusedStep& step) {
    const QuantizationParams params = step.quantization.value_or(QuantizationParams());
    const float scale = params.scale * unit_;
    ABSL_RETURN_IF_ERROR(AppendShift(-scale * static_cast<float>(params.zero_point)));
    fusion_.addend = step.addend;
    return Append(SumPostOp{scale});
  }

  const IntegerTerms& terms_;
  IntegerFusion& fusion_;
  bool commutes_ = true;  // whether every step does, with a positive factor
  float step_size_ = 1, unit_ = 1, shift_ = 0;
};

}  // namespace

absl::StatusOr<IntegerFusion> PlanIntegerFusion(const IntegerTerms& terms) {
  IntegerFusion fusion;
  PostOpChain chain(terms, &fusion);
  ABSL_RETURN_IF_ERROR(chain.Build());
  const bool shifts_src = terms.src.zero_point != 0;
  OutputScales& scales = fusion.attributes.output_scales;
  scales = {.mask = 2, .scales = {}};
  if (!terms.bias.empty() || shifts_src || chain.shift() != 0) fusion.bias.resize(terms.outputs);
  for (int64_t o = 0; o < terms.outputs; ++o) {
    const float weight = terms.weight_scales.empty() ? 1 : terms.weight_scales[o];
    const float product = terms.src.scale * weight;  // what 1 in the sums stands for
    scales.scales.push_back(product * chain.unit());
    if (fusion.bias.empty()) continue;
    double bias = terms.bias.empty() ? 0 : static_cast<double>(terms.bias[o]) / product;
    if (shifts_src) bias -= static_cast<double>(terms.src.zero_point) * terms.weight_sums[o];
    bias += chain.shift() / scales.scales[o];
    fusion.bias[o] = static_cast<float>(bias);
  }
  return fusion;
}

}  // namespace tilewire::lowering
