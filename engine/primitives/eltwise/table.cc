// SPDX-License-Identifier: Apache-2.0
#include "engine/base/status_macros.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/eltwise/eltwise.h"
#include "engine/primitives/eltwise/implementations.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace eltwise {
namespace {

absl::Status ValidateForward(const EltwiseDesc& desc) {
  ABSL_RETURN_IF_ERROR(CheckTensors("eltwise", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameShape("eltwise", desc.src, desc.dst));
  return CheckNoGradients("eltwise", desc);
}

absl::Status ValidateBackward(const EltwiseDesc& desc) {
  if (desc.src.IsZero() == desc.dst.IsZero()) {
    return InvalidArgument("eltwise: backward takes either src or dst, not ",
                           desc.src.IsZero() ? "none" : "both");
  }
  const MemoryDesc& saved = SavedTensor(desc);
  ABSL_RETURN_IF_ERROR(CheckSource(ReadsResult(desc) ? "eltwise: dst" : "eltwise: src", saved));
  return CheckGradientsLike("eltwise", desc, saved);
}

absl::Status Validate(const EltwiseDesc& desc, const Attributes&) {
  if (!functions::IsOfOneReal(desc.op.function)) {
    return InvalidArgument("eltwise: no algorithm ", static_cast<int>(desc.op.function));
  }
  return IsBackward(desc.prop_kind) ? ValidateBackward(desc) : ValidateForward(desc);
}

}  // namespace

PrimitiveInfo BackwardInfoOf(const Request<EltwiseDesc>& request) {
  const EltwiseDesc& desc = request.desc;
  return BasicInfo(request, {{ReadsResult(desc) ? kArgDst : kArgSrc, SavedTensor(desc)},
                             {kArgDiffDst, desc.diff_dst},
                             {kArgDiffSrc, desc.diff_src}});
}

}  // namespace eltwise

std::vector<EltwiseDesc> EltwiseProbes(DataType type) {
  EltwiseDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  EltwiseDesc backward;
  backward.prop_kind = PropKind::kBackwardData;
  backward.src = backward.diff_src = backward.diff_dst = desc.src;
  return {desc, backward};
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(Eltwise, eltwise, {PropKind::kBackwardData},
                                        {kAvx512AndAvx2,
                                         {{"dense", ResolveDense, CreateDense},
                                          {"dense_backward",
                                           ResolveDenseBackward,
                                           CreateDenseBackward,
                                           {.propagations = {PropKind::kBackwardData}}}}});

}  // namespace tilewire
