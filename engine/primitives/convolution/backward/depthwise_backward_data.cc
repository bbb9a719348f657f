// SPDX-License-Identifier: Apache-2.0
//
// The row of the gradient of src of depthwise convolutions, around DepthwiseSourceGradient: in the
// layouts of the forward row.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/backward/depthwise_source_gradient.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::convolution {
namespace {

DepthwiseSourceProblem SourceProblemOf(const Request<ConvolutionDesc>& request) {
  constexpr int kFirstTap = 3;  // dimension of weights
  const ConvolutionDesc& desc = request.desc;
  DepthwiseSourceProblem problem{.geometry = GeometryOf(desc),
                                 .unit = VectorUnit::Of(request.facts.isa)};
  const int lanes = problem.unit.lanes();
  problem.diff_src = StridesOf(desc.src, lanes, 1);
  problem.diff_dst = StridesOf(desc.dst, lanes, 1);
  problem.packed_diff_src = desc.src.IsPlain();
  problem.packed_diff_dst = desc.dst.IsPlain();
  problem.weights_block = desc.weights.stride(0);
  problem.weights_taps = SpatialStrides(desc.weights, kFirstTap);
  problem.post_ops = WithoutMask(request.attributes).post_ops;
  return problem;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBackwardDataDepthwise(
    const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  if (!GeometryOf(request.desc).IsDepthwise()) return Unimplemented("is for one channel a group");
  ABSL_ASSIGN_OR_RETURN(
      const ConvolutionDesc resolved,
      ResolveLayouts(request.desc, VectorUnit::Of(request.facts.isa), WeightsKind::kDepthwise));
  ABSL_RETURN_IF_ERROR(RequireMaskable(resolved.src, request.attributes));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardDataDepthwise(
    const Request<ConvolutionDesc>& request) {
  ABSL_ASSIGN_OR_RETURN(
      DepthwiseSourceGradient driver,
      DepthwiseSourceGradient::Create(request.facts.name, SourceProblemOf(request)));
  PrimitiveInfo info = GradientInfoOf(request);
  info.scratchpad_bytes = driver.scratchpad_floats() * kFloatBytes;
  return MakeDriven(std::move(info), std::move(driver),
                    [post_ops = request.attributes.post_ops](const DepthwiseSourceGradient& its,
                                                             const DrivenRun& run) {
                      its.Run({run.First<const float>(kArgDiffDst),
                               run.First<const float>(kArgWeights), run.First<float>(kArgDiffSrc)},
                              reinterpret_cast<float*>(run.scratchpad), run.team);
                      ApplyMask(post_ops, run.primitive.Desc(kArgDiffSrc),
                                run.First<const float>(kArgSrc1), run.First<float>(kArgDiffSrc),
                                run.team);
                    });
}

}  // namespace tilewire::convolution
