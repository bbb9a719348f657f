// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/layer_normalization/implementations.h"
#include "engine/primitives/layer_normalization/layer_normalization.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace layer_normalization {
namespace {

absl::Status Validate(const LayerNormalizationDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("layer_normalization", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims("layer_normalization: src", desc.src, "dst", desc.dst));
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
  if (desc.use_global_stats) {
    Dims rows = desc.src.dims();
    rows.pop_back();
    args.push_back({kArgMean, RowMajorF32(rows)});
    args.push_back({kArgVariance, RowMajorF32(rows)});
  }
  if (desc.use_scale_shift) {
    args.push_back({kArgWeights, RowMajorF32({2, desc.src.dim(desc.src.rank() - 1)})});
  }
  if (HasAddend(desc)) {
    args.push_back({kArgSrc1, desc.addend});
    args.push_back({kArgMultipleDst, desc.sum});
  }
  return BasicInfo(request.facts, PrimitiveKind::kLayerNormalization, std::move(args),
                   request.attributes);
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
  return {desc};
}

TILEWIRE_DEFINE_PRIMITIVE(LayerNormalization, layer_normalization,
                          {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}});

}  // namespace tilewire
