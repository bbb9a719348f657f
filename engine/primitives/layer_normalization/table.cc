// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layer_normalization/layer_normalization.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace layer_normalization {
namespace {

constexpr absl::string_view kName = "layer_normalization";
constexpr PropKinds kNormalizationGradients = {PropKind::kBackward, PropKind::kBackwardData};

absl::Status CheckAllTensors(const LayerNormalizationDesc& desc) {
  if (desc.prop_kind != PropKind::kForwardInference) {
    ABSL_RETURN_IF_ERROR(CheckAbsent(kName, desc.prop_kind, "addend", desc.addend));
    ABSL_RETURN_IF_ERROR(CheckAbsent(kName, desc.prop_kind, "sum", desc.sum));
  }
  return CheckTensorsOf(kName, desc);
}

absl::Status Validate(const LayerNormalizationDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckAllTensors(desc));
  ABSL_RETURN_IF_ERROR(CheckRank("layer_normalization", desc.src, 2, 5));
  if (!std::isfinite(desc.epsilon)) {
    return InvalidArgument("layer_normalization: epsilon must be finite");
  }
  if (!HasAddend(desc) && desc.sum.IsZero()) return absl::OkStatus();
  if (!HasAddend(desc) || desc.sum.IsZero() || desc.use_global_stats) {
    return InvalidArgument(
        "layer_normalization: addend and sum go together, and without given statistics");
  }
  ABSL_RETURN_IF_ERROR(CheckTensors("layer_normalization", desc.addend, desc.sum));
  ABSL_RETURN_IF_ERROR(CheckSameDims("layer_normalization: src", desc.src, "addend", desc.addend));
  return CheckSameDims("layer_normalization: src", desc.src, "sum", desc.sum);
}

}  // namespace

PrimitiveInfo InfoOf(const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  std::vector<ArgDesc> args = ArgsOf(desc.src, desc.dst);
  for (ArgDesc& parameter : ParameterArgs(desc)) args.push_back(std::move(parameter));
  if (HasAddend(desc)) {
    args.push_back({kArgSrc1, desc.addend});
    args.push_back({kArgMultipleDst, desc.sum});
  }
  return BasicInfo(request, std::move(args));
}

PrimitiveInfo BackwardInfoOf(const Request<LayerNormalizationDesc>& request) {
  const LayerNormalizationDesc& desc = request.desc;
  std::vector<ArgDesc> args = ParameterArgs(desc);
  args.push_back({kArgSrc, desc.src});
  args.push_back({kArgDiffDst, desc.diff_dst});
  args.push_back({kArgDiffSrc, desc.diff_src});
  if (WritesParameterGradients(desc)) {
    args.push_back({kArgDiffWeights, RowMajorF32({2, desc.src.dim(desc.src.rank() - 1)})});
  }
  return BasicInfo(request, std::move(args));
}

std::vector<ArgDesc> ParameterArgs(const LayerNormalizationDesc& desc) {
  const bool writes = WritesStatistics(desc);
  std::vector<ArgDesc> args;
  if (desc.use_global_stats || writes || IsBackward(desc.prop_kind)) {
    Dims rows = desc.src.dims();
    rows.pop_back();
    args.push_back({kArgMean, RowMajorF32(rows), writes});
    args.push_back({kArgVariance, RowMajorF32(rows), writes});
  }
  if (desc.use_scale_shift) {
    args.push_back({kArgWeights, RowMajorF32({2, desc.src.dim(desc.src.rank() - 1)})});
  }
  return args;
}

int64_t RowsOf(const LayerNormalizationDesc& desc) {
  int64_t rows = 1;
  for (int d = 0; d + 1 < desc.src.rank(); ++d) rows *= desc.src.dim(d);
  return rows;
}

}  // namespace layer_normalization

std::vector<LayerNormalizationDesc> LayerNormalizationProbes(DataType type) {
  LayerNormalizationDesc desc;
  desc.src = desc.dst = probes::Tagged({2, 32}, type, "nc");
  LayerNormalizationDesc backward;
  backward.prop_kind = PropKind::kBackward;
  backward.src = backward.diff_src = backward.diff_dst = desc.src;
  return {desc, backward};
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(LayerNormalization, layer_normalization,
                                        kNormalizationGradients,
                                        {kAvx512AndAvx2,
                                         {{"f32", ResolveRows, CreateRows},
                                          {"f32_backward",
                                           ResolveRowsBackward,
                                           CreateRowsBackward,
                                           {.propagations = kNormalizationGradients}}}});

}  // namespace tilewire
