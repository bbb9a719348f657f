// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/binary/binary.h"
#include "engine/primitives/binary/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

namespace binary {
namespace {

absl::Status CheckGradients(const BinaryDesc& desc) {
  if (!IsBackward(desc.prop_kind)) {
    ABSL_RETURN_IF_ERROR(CheckDestination("binary: dst", desc.dst));
    ABSL_RETURN_IF_ERROR(CheckAbsent("binary", desc.prop_kind, "diff_src0", desc.diff_src0));
    ABSL_RETURN_IF_ERROR(CheckAbsent("binary", desc.prop_kind, "diff_src1", desc.diff_src1));
    return CheckAbsent("binary", desc.prop_kind, "diff_dst", desc.diff_dst);
  }
  ABSL_RETURN_IF_ERROR(
      CheckGradient("binary", "diff_dst", desc.diff_dst, desc.dst, GradientUse::kRead));
  if (desc.diff_src0.IsZero() && desc.diff_src1.IsZero())
    return InvalidArgument("binary: both diff_src0 and diff_src1 are missing");
  if (!desc.diff_src0.IsZero()) {
    ABSL_RETURN_IF_ERROR(
        CheckGradient("binary", "diff_src0", desc.diff_src0, desc.src0, GradientUse::kWritten));
  }
  if (desc.diff_src1.IsZero()) return absl::OkStatus();
  return CheckGradient("binary", "diff_src1", desc.diff_src1, desc.src1, GradientUse::kWritten);
}

absl::Status Validate(const BinaryDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckSource("binary: src0", desc.src0));
  ABSL_RETURN_IF_ERROR(CheckSource("binary: src1", desc.src1));
  ABSL_RETURN_IF_ERROR(CheckGradients(desc));
  ABSL_RETURN_IF_ERROR(CheckSameDims("binary: src0", desc.src0, "dst", desc.dst));
  bool fits = desc.src1.rank() == desc.src0.rank();
  for (int d = 0; fits && d < desc.src0.rank(); ++d) {
    fits = desc.src1.dim(d) == desc.src0.dim(d) || desc.src1.dim(d) == 1;
  }
  if (!fits) {
    return InvalidArgument("binary: src1 ", DimsToString(desc.src1.dims()),
                           " cannot be broadcast to src0 ", DimsToString(desc.src0.dims()));
  }
  if (!IsBinaryAlgorithm(desc.algorithm)) {
    return InvalidArgument("binary: no algorithm ", static_cast<int>(desc.algorithm));
  }
  return absl::OkStatus();
}

}  // namespace

}  // namespace binary

std::vector<BinaryDesc> BinaryProbes(DataType type) {
  std::vector<BinaryDesc> descs;
  for (absl::string_view tag : probes::kImageTags) {
    BinaryDesc desc;
    desc.src0 = desc.dst = probes::Tagged({2, 32, 8, 8}, type, tag);
    desc.src1 = probes::Tagged({2, 32, 1, 1}, type, tag);
    descs.push_back(desc);
  }
  BinaryDesc backward = descs[0];
  backward.prop_kind = PropKind::kBackwardData;
  backward.diff_src0 = backward.diff_dst = backward.src0;
  backward.diff_src1 = backward.src1;
  descs.push_back(backward);
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Binary, binary, {PropKind::kBackwardData},
                                        {kAvx512AndAvx2,
                                         {{"f32", ResolveRows, CreateRows},
                                          {"f32_backward",
                                           ResolveRowsBackward,
                                           CreateRowsBackward,
                                           {.propagations = {PropKind::kBackwardData}}}}});

}  // namespace tilewire
