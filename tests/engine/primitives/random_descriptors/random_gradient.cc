// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/random_descriptors/random_gradient.h"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "engine/base/status_macros.h"
#include "engine/primitives/workspace.h"
#include "tests/engine/primitives/random_descriptors/random_cases.h"

namespace tilewire::testing {
namespace {

// One that the primitive has gradients for, training, or rarely any.
template <typename Desc>
PropKind RandomKind(Random& random) {
  constexpr PropKind kData = PropKind::kBackwardData, kWeights = PropKind::kBackwardWeights;
  if (Chance(random, 3))
    return Pick(random, {PropKind::kForwardInference, PropKind::kBackward, kData, kWeights});
  if (Chance(random, 12)) return PropKind::kForwardTraining;
  if constexpr (requires(Desc desc) { desc.use_scale_shift; } || std::is_same_v<Desc, PreluDesc>) {
    return Pick(random, {PropKind::kBackward, kData});
  } else if constexpr (requires(Desc desc) { desc.bias; }) {
    return Pick(random, {kData, kWeights});
  } else {
    return std::is_same_v<Desc, GatherDesc> ? kWeights : kData;
  }
}

// The gradient of a tensor: in its layout, any other or `any`; rarely missing or of other sizes.
absl::StatusOr<MemoryDesc> GradientOf(TensorMaker& make, const MemoryDesc& tensor) {
  Random& random = make.random();
  const int64_t percent = random.Integer(1, 100);
  if (percent <= 2) return MemoryDesc();
  if (percent <= 75 || tensor.IsZero()) return tensor;
  Dims dims = tensor.dims();
  if (percent <= 77) {
    dims[random.Integer(0, static_cast<int64_t>(dims.size()) - 1)] = RandomSize(random);
  }
  const LayoutChoice choice = percent <= 87 ? LayoutChoice::kAny : RandomLayoutChoice(random);
  return RandomLayout(dims, tensor.data_type(), choice, random.Next());
}

// Backward has gradients, and of src and dst what its formula reads.
template <typename Desc>
absl::Status SetGradients(TensorMaker& make, Desc* desc) {
  if constexpr (requires { desc->diff_src0; }) {
    ABSL_ASSIGN_OR_RETURN(desc->diff_src0, GradientOf(make, desc->src0));
    ABSL_ASSIGN_OR_RETURN(desc->diff_src1, GradientOf(make, desc->src1));
    ABSL_ASSIGN_OR_RETURN(desc->diff_dst, GradientOf(make, desc->dst));
  } else if constexpr (requires { desc->diff_dst; }) {
    ABSL_ASSIGN_OR_RETURN(desc->diff_src, GradientOf(make, desc->src));
    ABSL_ASSIGN_OR_RETURN(desc->diff_dst, GradientOf(make, desc->dst));
    const bool is_softmax = std::is_same_v<Desc, SoftmaxDesc>;
    const bool from_dst = std::is_same_v<Desc, EltwiseDesc> && Chance(make.random(), 50);
    const bool keeps_both = std::is_same_v<Desc, ReductionDesc> || Chance(make.random(), 2);
    if (!keeps_both) (is_softmax || from_dst ? desc->src : desc->dst) = MemoryDesc();
  }
  if constexpr (requires { desc->bias; }) {
    if (desc->prop_kind == PropKind::kBackwardData && Chance(make.random(), 97))
      desc->bias = MemoryDesc();
  }
  return absl::OkStatus();
}

// The workspace is in most cases what forward training of the descriptor saves, else nothing or
// that of another problem. Layouts that it depends on are then those that forward chose.
template <typename Desc>
void SetWorkspace(TensorMaker& make, Desc* desc) {
  Random& random = make.random();
  Desc forward = *desc;
  forward.prop_kind = PropKind::kForwardTraining;
  if (DescribedBytes(forward) > kMostTensorBytes || Chance(random, 4)) return;
  if (Chance(random, 4)) {
    desc->workspace = MakeWorkspace("another", "problem", random.Integer(0, 64));
    return;
  }
  const auto primitive = CreatePrimitive(forward, {}, {});
  if (!primitive.ok()) return;
  desc->src = (*primitive)->Desc(kArgSrc);
  desc->dst = (*primitive)->Desc(kArgDst);
  desc->workspace = (*primitive)->Desc(kArgWorkspace);
  if constexpr (requires { desc->kernel; }) {
    if (Chance(random, 4)) ++desc->kernel[0];
  }
}

template <typename Desc>
absl::Status TurnToTraining(TensorMaker& make, Desc* desc) {
  if constexpr (requires { desc->prop_kind; }) {
    desc->prop_kind = RandomKind<Desc>(make.random());
    const bool backward = IsBackward(desc->prop_kind);
    if constexpr (requires { desc->workspace; }) {
      if (backward || Chance(make.random(), 5)) SetWorkspace(make, desc);
    }
    if (backward || Chance(make.random(), 3)) return SetGradients(make, desc);
  }
  return absl::OkStatus();
}

absl::StatusOr<OpDesc> RandomLoss(TensorMaker& make) {
  Random& random = make.random();
  LossDesc desc;
  const Dims dims = RandomSizes(random, static_cast<int>(random.Integer(2, 4)));
  desc.algorithm = static_cast<LossFunction>(random.Integer(0, 3));
  desc.mean = Chance(random, 50);
  desc.factor = make.Real();
  if (desc.algorithm == LossFunction::kHuber) desc.delta = make.Real();
  ABSL_ASSIGN_OR_RETURN(desc.src, make.Src(dims));
  ABSL_ASSIGN_OR_RETURN(desc.dst, make.Dst({1}));
  if (Chance(random, 70)) {
    ABSL_ASSIGN_OR_RETURN(desc.diff_src, GradientOf(make, desc.src));
  }
  ABSL_ASSIGN_OR_RETURN(desc.targets, make.Src(dims));
  if (functions::HasClassWeights(desc.algorithm) && Chance(random, 20))
    desc.class_weights.assign(std::clamp<int64_t>(dims[1], 0, 1000), 0.5f);
  if (desc.algorithm != LossFunction::kSoftmaxCrossEntropy) return desc;
  desc.label_smoothing = Chance(random, 70) ? 0 : make.Real() / 3;
  desc.ignores = Chance(random, 30);
  desc.ignore_index = make.Number(random.Integer(-2, 2));
  if (Chance(random, 30)) return desc;
  Dims positions = dims;
  positions.erase(positions.begin() + 1);
  const DataType type = Chance(random, 50) ? DataType::kS32 : DataType::kS64;
  ABSL_ASSIGN_OR_RETURN(desc.targets, make.Typed(positions, type));
  return desc;
}

// The sums and masks that gradients of products take, or any.
absl::StatusOr<Attributes> AttributesOfGradient(TensorMaker& make, const OpDesc& desc) {
  Random& random = make.random();
  if (Chance(random, 8)) return RandomAttributes(make, desc);
  Attributes attributes;
  attributes.scratchpad_mode = ScratchpadMode::kUser;
  const bool has_weights = std::visit(
      [](const auto& op) {
        return requires { op.bias; };
      },
      desc);
  if (has_weights && Chance(random, 30)) {
    ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(SumPostOp{}));
  }
  if (has_weights && Chance(random, 20)) {
    ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(MaskPostOp{0.25f}));
  }
  return attributes;
}

}  // namespace

absl::StatusOr<RandomGradientCase> RandomGradient(Random& random) {
  constexpr int kPercentF32 = 94;
  TensorMaker make(random, kPercentF32);
  absl::StatusOr<OpDesc> desc = Chance(random, 5) ? RandomLoss(make) : RandomTrainedOperation(make);
  ABSL_RETURN_IF_ERROR(desc.status());
  ABSL_RETURN_IF_ERROR(std::visit([&](auto& op) { return TurnToTraining(make, &op); }, *desc));
  ABSL_ASSIGN_OR_RETURN(Attributes attributes, AttributesOfGradient(make, *desc));
  const bool is_comparable = make.reals_are_tame() && attributes.precision == Precision::kExact;
  return RandomGradientCase{{*std::move(desc), std::move(attributes)}, is_comparable};
}

}  // namespace tilewire::testing
