// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/direct/direct_cost.h"
#include "engine/primitives/convolution/direct/direct_driver.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/direct/regrouped_convolution.h"
#include "engine/primitives/convolution/direct/regrouping.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"

namespace tilewire::convolution {
namespace {

DirectProblem ProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                        const VectorUnit& unit) {
  DirectProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  problem.tap_channels = unit.lanes();
  problem.src = StridesOf(desc.src, unit.lanes(), problem.geometry.ic);
  problem.dst = StridesInFloats(desc.dst, unit.lanes(), problem.geometry.oc);
  problem.dst_type = desc.dst.data_type();
  const int group = problem.geometry.grouped_weights ? 1 : 0;
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) : 0,
                     .oc_block = desc.weights.stride(group),
                     .ic_block = desc.weights.stride(group + 1)};
  problem.has_bias = !desc.bias.IsZero();
  problem.post_ops = attributes.post_ops;
  return problem;
}

// Groups begin at the first lane of a block.
bool GroupsAreAligned(const ConvolutionDesc& desc, const VectorUnit& unit) {
  const Geometry geometry = GeometryOf(desc);
  const int lanes = unit.lanes();
  return geometry.groups == 1 ||
         (geometry.oc % lanes == 0 && (desc.src.IsPlain() || geometry.ic % lanes == 0));
}

// Lanes are full in sums and in dst.
absl::Status RequireFewOutputs(const Geometry& geometry, int64_t lanes) {
  constexpr int64_t kFewestVectors = 4;
  if (geometry.ic < lanes || geometry.oc > lanes ||
      (geometry.groups > 1 && geometry.ic % lanes != 0) ||
      *CheckedProduct(geometry.out) < kFewestVectors * lanes) {
    return Unimplemented("is for few output channels of many pixels, and groups of whole blocks");
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveDirect(const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved,
                        ResolveLayouts(request.desc, unit, WeightsKind::kDense));
  if (!GroupsAreAligned(resolved, unit)) ABSL_RETURN_IF_ERROR(RequireRegrouping(resolved, unit));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDirect(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  PrimitiveInfo info = InfoOf(request);
  DirectProblem problem = ProblemOf(desc, request.attributes, unit);
  problem.second_cache = request.machine.cache_bytes[1];
  if (GroupsAreAligned(desc, unit)) return CreateDirectPrimitive(problem, std::move(info));
  return CreateRegrouped(desc, problem, std::move(info));
}

double CostDirect(const Request<ConvolutionDesc>& resolved) {
  constexpr double kSlowSource = 2;
  const double cycles =
      DirectCycles(GeometryOf(resolved.desc), VectorUnit::Of(resolved.facts.isa), resolved.machine);
  return IsReadAsFastAsBlocks(resolved.desc) ? cycles : kSlowSource * cycles;
}

absl::StatusOr<ConvolutionDesc> ResolveFirstLayer(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  constexpr int kMostChannels = 4;
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, request.attributes));
  const Geometry geometry = GeometryOf(desc);
  if (geometry.grouped_weights || geometry.ic > kMostChannels) {
    return Unimplemented("is for 1 to 4 input channels and no groups");
  }
  if (geometry.kernel[0] > 1) return Unimplemented("is for kernels without depth");
  return ResolveLayouts(desc, VectorUnit::Of(request.facts.isa), WeightsKind::kFirstLayer);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFirstLayer(
    const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  DirectProblem problem = ProblemOf(request.desc, request.attributes, unit);
  problem.tap_channels = static_cast<int>(problem.geometry.ic);
  return CreateDirectPrimitive(problem, InfoOf(request));
}

absl::StatusOr<ConvolutionDesc> ResolveFewOutputs(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, request.attributes));
  ABSL_RETURN_IF_ERROR(RequireFewOutputs(GeometryOf(desc), unit.lanes()));
  return ResolveLayouts(desc, unit, WeightsKind::kFewOutputs);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateFewOutputs(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  DirectProblem problem = ProblemOf(desc, request.attributes, VectorUnit::Of(request.facts.isa));
  problem.few_outputs = true;
  problem.tap_channels = 1;
  problem.dst.block = desc.dst.stride(1);
  return CreateDirectPrimitive(problem, InfoOf(request));
}

double CostFewOutputs(const Request<ConvolutionDesc>& resolved) {
  return FewOutputsCycles(GeometryOf(resolved.desc), VectorUnit::Of(resolved.facts.isa),
                          resolved.machine);
}

absl::StatusOr<ConvolutionDesc> ResolveDepthwise(const Request<ConvolutionDesc>& request) {
  ABSL_RETURN_IF_ERROR(RequireTypesOfRow(request));
  if (!GeometryOf(request.desc).IsDepthwise()) return Unimplemented("is for one channel a group");
  return ResolveLayouts(request.desc, VectorUnit::Of(request.facts.isa), WeightsKind::kDepthwise);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateDepthwise(
    const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  DirectProblem problem = ProblemOf(desc, request.attributes, unit);
  problem.depthwise = true;
  problem.packed_src = desc.src.IsPlain();
  problem.packed_dst = desc.dst.IsPlain();
  problem.tap_channels = 1;
  problem.geometry.oc = problem.geometry.groups;
  problem.geometry.groups = 1;
  problem.weights = {.group = 0, .oc_block = desc.weights.stride(0), .ic_block = 0};
  return CreateDirectPrimitive(problem, InfoOf(request));
}

}  // namespace tilewire::convolution
