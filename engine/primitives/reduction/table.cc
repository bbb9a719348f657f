// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/reduction/implementations.h"
#include "engine/primitives/reduction/reduction.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

absl::string_view AlgorithmName(ReductionAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"max",
                                          "min",
                                          "sum",
                                          "mul",
                                          "mean",
                                          "norm_lp_max",
                                          "norm_lp_sum",
                                          "norm_lp_power_p_max",
                                          "norm_lp_power_p_sum"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace reduction {
namespace {

absl::Status CheckTensorsOf(const ReductionDesc& desc) {
  if (IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckSource("reduction: src", desc.src));
    ABSL_RETURN_IF_ERROR(
        CheckGradient("reduction", "diff_dst", desc.diff_dst, desc.dst, GradientUse::kRead));
    return CheckGradient("reduction", "diff_src", desc.diff_src, desc.src, GradientUse::kWritten);
  }
  ABSL_RETURN_IF_ERROR(CheckTensors("reduction", desc.src, desc.dst));
  return CheckNoGradients("reduction", desc);
}

absl::Status Validate(const ReductionDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf(desc));
  bool fits = desc.src.rank() == desc.dst.rank();
  for (int d = 0; fits && d < desc.src.rank(); ++d) {
    fits = desc.dst.dim(d) == desc.src.dim(d) || desc.dst.dim(d) == 1;
  }
  if (!fits) {
    return InvalidArgument("reduction: src ", DimsToString(desc.src.dims()),
                           " does not reduce to dst ", DimsToString(desc.dst.dims()));
  }
  if (static_cast<int>(desc.algorithm) >= kReductionAlgorithmCount) {
    return InvalidArgument("reduction: no algorithm ", static_cast<int>(desc.algorithm));
  }
  if (IsNorm(desc.algorithm) &&
      !(desc.p >= 1 && std::isfinite(desc.p) && std::isfinite(desc.eps))) {
    return InvalidArgument("reduction: p ", desc.p, ", eps ", desc.eps,
                           ": takes a finite p >= 1 and a finite eps");
  }
  return absl::OkStatus();
}

}  // namespace

int64_t ReducedCount(const ReductionDesc& desc) {
  int64_t count = 1;
  for (int d = 0; d < desc.src.rank(); ++d) {
    if (desc.dst.dim(d) == 1) count *= desc.src.dim(d);
  }
  return count;
}

float NeutralElement(ReductionAlgorithm algorithm) {
  switch (algorithm) {
    case ReductionAlgorithm::kMax:
      return -std::numeric_limits<float>::infinity();
    case ReductionAlgorithm::kMin:
      return std::numeric_limits<float>::infinity();
    case ReductionAlgorithm::kMul:
      return 1;
    default:
      return 0;
  }
}

}  // namespace reduction

std::vector<ReductionDesc> ReductionProbes(DataType type) {
  std::vector<ReductionDesc> descs = probes::Images<ReductionDesc>(type, {2, 32, 1, 1});
  ReductionDesc backward = descs[0];
  backward.prop_kind = PropKind::kBackwardData;
  backward.diff_src = backward.src;
  backward.diff_dst = backward.dst;
  descs.push_back(backward);
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Reduction, reduction, {PropKind::kBackwardData},
                                        {kAvx512AndAvx2,
                                         {{"f32", ResolveStrided, CreateStrided},
                                          {"f32_backward",
                                           ResolveBroadcastBackward,
                                           CreateBroadcastBackward,
                                           {.propagations = {PropKind::kBackwardData}}}}},
                                        {kAnyCpu, {{"rows", ResolveRows, CreateRows}}});

}  // namespace tilewire
