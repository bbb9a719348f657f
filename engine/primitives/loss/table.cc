// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/loss/implementations.h"
#include "engine/primitives/loss/loss.h"
#include "engine/primitives/loss/targets.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace loss {
namespace {

// [N, C, d...] without C.
Dims WithoutClasses(Dims dims) {
  dims.erase(dims.begin() + 1);
  return dims;
}

absl::Status ValidateDims(const LossDesc& desc) {
  if (desc.dst.dims() != Dims{1})
    return InvalidArgument("loss: dst is ", desc.dst.ToString(), ", expected [1]");
  Dims targets = desc.src.dims();
  const bool needs_classes =
      desc.algorithm == LossFunction::kSoftmaxCrossEntropy || !desc.class_weights.empty();
  if (needs_classes && (desc.src.rank() < 2 || desc.src.dim(1) < 1))
    return InvalidArgument("loss: src ", desc.src.ToString(), " has no classes [N, C, ...]");
  if (TakesLabels(desc)) targets = WithoutClasses(targets);
  if (desc.targets.dims() == targets) return absl::OkStatus();
  return InvalidArgument("loss: targets ", desc.targets.ToString(), " for src ",
                         desc.src.ToString(), ", expected ", DimsToString(targets));
}

absl::Status ValidateNumbers(const LossDesc& desc) {
  if (!std::isfinite(desc.factor))
    return InvalidArgument("loss: factor ", desc.factor, " is not finite");
  if (!(desc.delta > 0) || !std::isfinite(desc.delta))
    return InvalidArgument("loss: delta ", desc.delta, "; it must be positive");
  if (!(desc.label_smoothing >= 0 && desc.label_smoothing < 1))
    return InvalidArgument("loss: label smoothing ", desc.label_smoothing,
                           "; allowed: from 0 to below 1");
  for (float weight : desc.class_weights) {
    if (!(weight >= 0) || !std::isfinite(weight))
      return InvalidArgument("loss: a class weight is ", weight, "; it must be 0 or positive");
  }
  return absl::OkStatus();
}

absl::Status ValidateClasses(const LossDesc& desc) {
  if (desc.ignores && !TakesLabels(desc))
    return InvalidArgument("loss: only labels can be ignored");
  if (desc.label_smoothing != 0 && desc.algorithm != LossFunction::kSoftmaxCrossEntropy)
    return InvalidArgument("loss: ", AlgorithmName(desc.algorithm), " has no label smoothing");
  if (!desc.class_weights.empty() && !functions::HasClassWeights(desc.algorithm))
    return InvalidArgument("loss: ", AlgorithmName(desc.algorithm), " has no class weights");
  const auto weights = static_cast<int64_t>(desc.class_weights.size());
  if (weights == 0 || weights == desc.src.dim(1)) return absl::OkStatus();
  return InvalidArgument("loss: ", weights, " class weights for ", desc.src.dim(1), " classes");
}

absl::Status Validate(const LossDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("loss", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSource("loss: targets", desc.targets));
  ABSL_RETURN_IF_ERROR(ValidateDims(desc));
  ABSL_RETURN_IF_ERROR(ValidateNumbers(desc));
  ABSL_RETURN_IF_ERROR(ValidateClasses(desc));
  if (desc.diff_src.IsZero()) return absl::OkStatus();
  return CheckGradient("loss", "diff_src", desc.diff_src, desc.src, GradientUse::kWritten);
}

}  // namespace

PrimitiveInfo InfoOf(const Request<LossDesc>& request) {
  const LossDesc& desc = request.desc;
  std::vector<ArgDesc> args = {{kArgSrc, desc.src}, {kArgSrc1, desc.targets}, {kArgDst, desc.dst}};
  if (!desc.diff_src.IsZero()) args.push_back({kArgDiffSrc, desc.diff_src});
  return BasicInfo(request, std::move(args));
}

}  // namespace loss

std::vector<LossDesc> LossProbes(DataType type) {
  LossDesc labels;
  labels.src = probes::Tagged({8, 10}, type, "nc");
  labels.targets = probes::Tagged({8}, DataType::kS64, "x");
  labels.dst = probes::Tagged({1}, DataType::kF32, "x");
  labels.diff_src = labels.src;
  LossDesc squares = labels;
  squares.algorithm = LossFunction::kMeanSquaredError;
  squares.targets = squares.src;
  return {labels, squares};
}

TILEWIRE_DEFINE_PRIMITIVE(Loss, loss, {kAnyCpu, {{"rows", ResolveRows, CreateRows}}});

}  // namespace tilewire
