// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/lrn/implementations.h"
#include "engine/primitives/lrn/lrn.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

absl::string_view AlgorithmName(LrnAlgorithm algorithm) {
  constexpr absl::string_view kNames[] = {"across_channels", "within_channel"};
  return kNames[static_cast<size_t>(algorithm)];
}

namespace lrn {
namespace {

absl::Status Validate(const LrnDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf("lrn", desc));
  const bool within = desc.algorithm == LrnAlgorithm::kWithinChannel;
  const int least = within ? 3 : 2, rank = desc.src.rank();
  if (rank < least || rank > 5) {
    return InvalidArgument("lrn: src has rank ", rank, ", allowed are ", least, " to 5");
  }
  constexpr int64_t kLargest = int64_t{1} << 20;
  if (desc.local_size < 1 || desc.local_size > kLargest) {
    return InvalidArgument("lrn: local_size ", desc.local_size, " is not in [1, ", kLargest, "]");
  }
  for (float value : {desc.alpha, desc.beta, desc.k}) {
    if (!std::isfinite(value)) {
      return InvalidArgument("lrn: alpha, beta and k must be finite");
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LrnDesc> ResolveDefaults(const LrnDesc& desc, const Attributes& attributes) {
  ABSL_RETURN_IF_ERROR(RequireNoPostOps(attributes));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.src));
  ABSL_RETURN_IF_ERROR(RequireF32(desc.dst));
  LrnDesc resolved = desc;
  ABSL_ASSIGN_OR_RETURN(resolved.dst, OrLayoutOf(desc.dst, desc.src));
  return resolved;
}

absl::Status RequirePositiveBases(const LrnDesc& desc) {
  if (desc.k > 0 && desc.alpha >= 0) return absl::OkStatus();
  return Unimplemented("takes a k above 0 and an alpha that is not negative, not ", desc.k, " and ",
                       desc.alpha);
}

float ScaleOf(const LrnDesc& desc) {
  double summands = desc.local_size;
  if (desc.algorithm == LrnAlgorithm::kWithinChannel) {
    summands = std::pow(summands, desc.src.rank() - 2);
  }
  return static_cast<float>(desc.alpha / summands);
}

}  // namespace lrn

std::vector<LrnDesc> LrnProbes(DataType type) {
  std::vector<LrnDesc> descs;
  for (LrnAlgorithm algorithm : {LrnAlgorithm::kAcrossChannels, LrnAlgorithm::kWithinChannel}) {
    for (absl::string_view tag : probes::kImageTags) {
      const MemoryDesc image = probes::Tagged({2, 32, 8, 8}, type, tag);
      descs.push_back(LrnDesc{PropKind::kForwardInference, algorithm, image, image});
    }
  }
  for (absl::string_view tag : probes::kImageTags) {
    LrnDesc backward;
    backward.prop_kind = PropKind::kBackwardData;
    backward.src = backward.diff_src = backward.diff_dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    descs.push_back(backward);
  }
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Lrn, lrn, {PropKind::kBackwardData},
                                        {kAvx512AndAvx2,
                                         {{"f32_blocked", ResolveBlocked, CreateBlocked},
                                          {"f32_runs", ResolveRuns, CreateRuns},
                                          {"f32_blocked_backward",
                                           ResolveBlockedBackward,
                                           CreateBlockedBackward,
                                           {.propagations = {PropKind::kBackwardData}}},
                                          {"f32_runs_backward",
                                           ResolveRunsBackward,
                                           CreateRunsBackward,
                                           {.propagations = {PropKind::kBackwardData}}}}});

}  // namespace tilewire
