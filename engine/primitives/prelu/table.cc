// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/prelu/implementations.h"
#include "engine/primitives/prelu/prelu.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {

namespace prelu {
namespace {

constexpr PropKinds kGradients = {PropKind::kBackward, PropKind::kBackwardData};

absl::Status CheckWeights(const PreluDesc& desc) {
  if (!desc.weights.IsAny()) ABSL_RETURN_IF_ERROR(CheckSource("prelu: weights", desc.weights));
  bool fits = desc.weights.rank() == desc.src.rank();
  for (int d = 0; fits && d < desc.src.rank(); ++d)
    fits = desc.weights.dim(d) == desc.src.dim(d) || desc.weights.dim(d) == 1;
  if (!fits) {
    return InvalidArgument("prelu: weights ", DimsToString(desc.weights.dims()),
                           " cannot be broadcast to src ", DimsToString(desc.src.dims()));
  }
  if (desc.prop_kind != PropKind::kBackward || desc.weights.IsOpaque()) return absl::OkStatus();
  return CheckDestination("prelu: weights, the layout of diff_weights,", desc.weights);
}

absl::Status Validate(const PreluDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf("prelu", desc));
  return CheckWeights(desc);
}

}  // namespace

absl::StatusOr<MemoryDesc> WeightsOf(const PreluDesc& desc) {
  if (desc.weights.IsOpaque()) return Unimplemented("does not read ", desc.weights.ToString());
  return OrLayoutOf(desc.weights, desc.src);
}

PrimitiveInfo InfoOfPrelu(const Request<PreluDesc>& request) {
  const PreluDesc& desc = request.desc;
  std::vector<ArgDesc> args = {{kArgSrc, desc.src}, {kArgWeights, desc.weights}};
  if (!IsBackward(desc.prop_kind)) {
    args.push_back({kArgDst, desc.dst});
    return BasicInfo(request, std::move(args));
  }
  args.push_back({kArgDiffDst, desc.diff_dst});
  args.push_back({kArgDiffSrc, desc.diff_src});
  if (desc.prop_kind == PropKind::kBackward) args.push_back({kArgDiffWeights, desc.weights});
  return BasicInfo(request, std::move(args));
}

}  // namespace prelu

std::vector<PreluDesc> PreluProbes(DataType type) {
  PreluDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32, 8, 8}, type, "nchw");
  desc.weights = probes::Any({1, 32, 1, 1}, type);
  PreluDesc backward;
  backward.prop_kind = PropKind::kBackward;
  backward.src = backward.diff_src = backward.diff_dst = desc.src;
  backward.weights = desc.weights;
  return {desc, backward};
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(
    Prelu, prelu, kGradients,
    {kAvx512AndAvx2,
     {{"f32", ResolveAsBinary, CreateAsBinary},
      {"f32_backward", ResolveAsBinary, CreateAsBinary, {.propagations = kGradients}}}});

}  // namespace tilewire
