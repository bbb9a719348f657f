// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/memory/layout.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"
#include "engine/primitives/batch_normalization/implementations.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/gradients.h"
#include "engine/primitives/probe_tensors.h"
#include "engine/primitives/row_table.h"
#include "engine/primitives/workspace.h"

namespace tilewire {
namespace batch_normalization {
namespace {

constexpr absl::string_view kName = "batch_normalization";
constexpr PropKinds kNormalizationGradients = {PropKind::kBackward, PropKind::kBackwardData};

absl::Status CheckAddend(const BatchNormalizationDesc& desc) {
  const bool takes_one =
      IsBackward(desc.prop_kind) ? desc.fuse_relu : desc.prop_kind == PropKind::kForwardTraining;
  if (!takes_one) return CheckAbsent(kName, desc.prop_kind, "addend", desc.addend);
  if (!HasAddend(desc)) return absl::OkStatus();
  if (IsBackward(desc.prop_kind))
    return CheckGradient(kName, "addend", desc.addend, desc.src, GradientUse::kWritten);
  ABSL_RETURN_IF_ERROR(CheckSource("batch_normalization: addend", desc.addend));
  return CheckSameDims("batch_normalization: src", desc.src, "addend", desc.addend);
}

absl::Status Validate(const BatchNormalizationDesc& desc, const Attributes&) {
  ABSL_RETURN_IF_ERROR(CheckTensorsOf(kName, desc));
  ABSL_RETURN_IF_ERROR(CheckRank("batch_normalization", desc.src, 2, 5));
  ABSL_RETURN_IF_ERROR(CheckAddend(desc));
  if (!std::isfinite(desc.epsilon)) {
    return InvalidArgument("batch_normalization: epsilon must be finite");
  }
  if (!(desc.relu_limit > 0))
    return InvalidArgument("batch_normalization: relu_limit must be above 0");
  const bool reads_bits = IsBackward(desc.prop_kind) && SavesBits(desc);
  return CheckWorkspace(kName, desc.prop_kind, desc.workspace,
                        reads_bits ? BitsOf(desc) : MemoryDesc(), "dims");
}

}  // namespace

PrimitiveInfo InfoOf(const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  std::vector<ArgDesc> args = {{kArgSrc, desc.src}, {kArgDst, desc.dst}};
  if (HasAddend(desc)) args.push_back({kArgSrc1, desc.addend});
  for (ArgDesc& parameter : ParameterArgs(desc)) args.push_back(std::move(parameter));
  if (SavesBits(desc)) args.push_back({kArgWorkspace, BitsOf(desc)});
  return BasicInfo(request, std::move(args));
}

PrimitiveInfo BackwardInfoOf(const Request<BatchNormalizationDesc>& request) {
  const BatchNormalizationDesc& desc = request.desc;
  std::vector<ArgDesc> args = ParameterArgs(desc);
  args.push_back({kArgSrc, desc.src});
  args.push_back({kArgDiffDst, desc.diff_dst});
  args.push_back({kArgDiffSrc, desc.diff_src});
  if (HasAddend(desc)) args.push_back({kArgDiffSrc1, desc.addend});
  if (desc.fuse_relu) args.push_back({kArgWorkspace, desc.workspace});
  if (WritesParameterGradients(desc))
    args.push_back({kArgDiffWeights, RowMajorF32({2, desc.src.dim(1)})});
  return BasicInfo(request, std::move(args));
}

std::vector<ArgDesc> ParameterArgs(const BatchNormalizationDesc& desc) {
  const int64_t channels = desc.src.dim(1);
  const bool writes = WritesStatistics(desc);
  std::vector<ArgDesc> args;
  if (desc.use_global_stats || writes || IsBackward(desc.prop_kind)) {
    args.push_back({kArgMean, RowMajorF32({channels}), writes});
    args.push_back({kArgVariance, RowMajorF32({channels}), writes});
  }
  if (desc.use_scale_shift) args.push_back({kArgWeights, RowMajorF32({2, channels})});
  return args;
}

int64_t PixelsOf(const BatchNormalizationDesc& desc) {
  Dims channel = desc.src.dims();
  channel[1] = 1;
  return std::max<int64_t>(1, ElementCount(channel).value_or(1));
}

int64_t ByteOfChannel(const BatchNormalizationDesc& desc, int64_t c) {
  return c / kChannelsOfBits * PixelsOf(desc) * kBytesOfPixel + c % kChannelsOfBits / 8;
}

MemoryDesc BitsOf(const BatchNormalizationDesc& desc) {
  std::string key;
  AppendField(desc.src.dims(), &key);
  return MakeWorkspace("batch_normalization_passed_bits", key,
                       DivUp(desc.src.dim(1), kChannelsOfBits) * PixelsOf(desc) * kBytesOfPixel);
}

PostOps PostOpsOf(const BatchNormalizationDesc& desc, const Attributes& attributes) {
  PostOps post_ops;
  if (desc.fuse_relu) {
    const bool is_limited = std::isfinite(desc.relu_limit);
    const absl::Status status = post_ops.Append(
        is_limited ? EltwisePostOp{{EltwiseAlgorithm::kBoundedRelu, desc.relu_limit}}
                   : EltwisePostOp{});
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
  std::vector<BatchNormalizationDesc> descs =
      probes::Images<BatchNormalizationDesc>(type, {2, 32, 8, 8});
  BatchNormalizationDesc backward;
  backward.prop_kind = PropKind::kBackward;
  backward.src = backward.diff_src = backward.diff_dst = descs[0].src;
  descs.push_back(backward);
  BatchNormalizationDesc training = descs[0];
  training.prop_kind = PropKind::kForwardTraining;
  training.use_global_stats = false;
  descs.push_back(training);
  return descs;
}

TILEWIRE_DEFINE_PRIMITIVE_WITH_BACKWARD(
    BatchNormalization, batch_normalization, kNormalizationGradients,
    {kAvx512AndAvx2,
     {{"f32", ResolveRows, CreateRows},
      {"f32_batch", ResolveBatch, CreateBatch, {.propagations = {PropKind::kForwardTraining}}},
      {"f32_batch_backward",
       ResolveBatchBackward,
       CreateBatchBackward,
       {.propagations = kNormalizationGradients}}}});

}  // namespace tilewire
