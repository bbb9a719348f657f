// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"

namespace tilewire {
namespace batch_normalization {
namespace {

absl::Status Validate(const BatchNormalizationDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensors("batch_normalization", desc.src, desc.dst));
  ABSL_RETURN_IF_ERROR(CheckSameDims("batch_normalization: src", desc.src, "dst", desc.dst));
  ABSL_RETURN_IF_ERROR(CheckRank("batch_normalization", desc.src, 2, 5));
  if (!std::isfinite(desc.epsilon)) {
    return InvalidArgument("batch_normalization: epsilon must be finite");
  }
  return absl::OkStatus();
}

}  // namespace

PrimitiveInfo InfoOf(const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  const int64_t channels = desc.src.dim(1);
  std::vector<ArgDesc> args = {{kArgSrc, desc.src}, {kArgDst, desc.dst}};
  if (desc.use_global_stats) {
    args.push_back({kArgMean, RowMajorF32({channels})});
    args.push_back({kArgVariance, RowMajorF32({channels})});
  }
  if (desc.use_scale_shift) args.push_back({kArgWeights, RowMajorF32({2, channels})});
  return BasicInfo(request.facts, PrimitiveKind::kBatchNormalization, std::move(args),
                   request.attributes);
}

PostOps PostOpsOf(const BatchNormalizationDesc& desc, const Attributes& attributes) {
  PostOps post_ops;
  if (desc.fuse_relu) {
    const absl::Status status = post_ops.Append(EltwisePostOp{});
    TILEWIRE_CHECK(status.ok(), "an empty chain takes a relu");
  }
  for (const PostOp& entry : attributes.post_ops.entries()) {
    const absl::Status status = post_ops.Append(entry);
    TILEWIRE_CHECK(status.ok(), "ResolveReference takes one entry at most");
  }
  return post_ops;
}

ChannelParameters ParametersOf(const BatchNormalizationDesc& desc, const ExecuteArgs& args) {
  const float* scale = desc.use_scale_shift ? args.Get<const float>(kArgWeights) : nullptr;
  return {args.Get<const float>(kArgMean), args.Get<const float>(kArgVariance), scale,
          scale == nullptr ? nullptr : scale + desc.src.dim(1)};
}

}  // namespace batch_normalization

std::vector<BatchNormalizationDesc> BatchNormalizationProbes(DataType type) {
  return probes::Images<BatchNormalizationDesc>(type, {2, 32, 8, 8});
}

TILEWIRE_DEFINE_PRIMITIVE(BatchNormalization, batch_normalization,
                          {kAvx512AndAvx2, {{"f32", ResolveRows, CreateRows}}});

}  // namespace tilewire
