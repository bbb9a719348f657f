// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/softmax/implementations.h"
#include "engine/primitives/softmax/softmax.h"

namespace tilewire {

absl::string_view AlgorithmName(SoftmaxAlgorithm algorithm) {
  return algorithm == SoftmaxAlgorithm::kSoftmax ? "softmax" : "logsoftmax";
}

namespace softmax {
namespace {

absl::Status ValidateForward(const SoftmaxDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckTensors("softmax", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("softmax", desc.src, desc.dst));
  return CheckNoGradients("softmax", desc);
}

absl::Status ValidateBackward(const SoftmaxDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckAbsent("softmax", desc.prop_kind, "src", desc.src));
  ABSL_RETURN_IF_ERROR(CheckSource("softmax: dst", desc.dst));
  return CheckGradientsLike("softmax", desc, desc.dst);
}

absl::Status Validate(const SoftmaxDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(IsBackward(desc.prop_kind) ? ValidateBackward(desc) : ValidateForward(desc));
  return CheckAxis("softmax", desc.axis, desc.dst);
}

}  // namespace

absl::Status RequireSoftmax(const SoftmaxDesc& desc) {
  if (desc.algorithm == SoftmaxAlgorithm::kSoftmax) return absl::OkStatus();
  return Unimplemented("computes softmax only, not ", AlgorithmName(desc.algorithm));
}

}  // namespace softmax

std::vector<SoftmaxDesc> SoftmaxProbes(DataType type) {
  SoftmaxDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32}, type, "nc");
  SoftmaxDesc blocked;
  blocked.src = blocked.dst = probes::Tagged({2, 32, 4, 4}, type, "nChw16c");
  SoftmaxDesc backward;
  backward.prop_kind = PropKind::kBackwardData;
  backward.dst = backward.diff_src = backward.diff_dst = desc.dst;
  return {desc, blocked, backward};
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(
    Softmax, softmax, {PropKind::kBackwardData},
    {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}},
    {kAvx512AndAvx2, {{"f32_columns", ResolveColumns, CreateColumns}}},
    {kAvx512AndAvx2,
     {{"f32_backward",
       ResolveLinesBackward,
       CreateLinesBackward,
       {.propagations = {PropKind::kBackwardData}}}}},
    {kAnyCpu, {{"reordered", ResolveReordered, CreateReordered, {.runs_another = true}}}});

}  // namespace tilewire
