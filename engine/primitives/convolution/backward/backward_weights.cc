// SPDX-License-Identifier: Apache-2.0
//
// The fast rows of the gradient of weights: their layouts, which are those of the forward direct
// convolution and of first layers, and the primitive around WeightsGradientDriver.
#include <optional>
#include <utility>

#include "engine/base/aligned_buffer.h"
#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/primitives/convolution/backward/dense_pixels.h"
#include "engine/primitives/convolution/backward/depthwise_weights_gradient.h"
#include "engine/primitives/convolution/backward/weights_gradient_driver.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/geometry.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/driven_primitive.h"
#include "engine/primitives/weighted_gradients.h"

namespace tilewire::convolution {
namespace {

constexpr int64_t kMostFirstChannels = 4;  // of src, where forward calls it a first layer

bool IsFirstLayer(const ConvolutionDesc& resolved, const Geometry& geometry) {
  const MemoryDesc& weights = resolved.weights;
  return !geometry.grouped_weights && geometry.ic <= kMostFirstChannels &&
         weights.inner_blocks().size() == 1 && weights.inner_blocks()[0].dim == 0;
}

absl::StatusOr<ConvolutionDesc> Resolved(const ConvolutionDesc& desc, const VectorUnit& unit) {
  const Geometry geometry = GeometryOf(desc);
  const bool may_be_first =
      !geometry.grouped_weights && geometry.ic <= kMostFirstChannels && geometry.kernel[0] == 1;
  if (may_be_first) {
    absl::StatusOr<ConvolutionDesc> first = ResolveLayouts(desc, unit, WeightsKind::kFirstLayer);
    if (first.ok()) return first;
  }
  return ResolveLayouts(desc, unit, WeightsKind::kDense);
}

WeightsGradientProblem GradientProblemOf(const ConvolutionDesc& desc, const Attributes& attributes,
                                         const VectorUnit& unit) {
  WeightsGradientProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  const Geometry& geometry = problem.geometry;
  const int group = geometry.grouped_weights ? 1 : 0;
  problem.src = StridesOf(desc.src, unit.lanes(), geometry.ic);
  problem.dst = StridesOf(desc.dst, unit.lanes(), geometry.oc);
  problem.weights = {.group = group == 1 ? desc.weights.stride(0) : 0,
                     .oc_block = desc.weights.stride(group),
                     .ic_block = desc.weights.stride(group + 1),
                     .channel = unit.lanes(),
                     .taps = SpatialStrides(desc.weights, group + 2),
                     .floats = desc.weights.PaddedElementCount()};
  if (IsFirstLayer(desc, geometry)) problem.weights.ic_block = problem.weights.oc_block;
  problem.has_bias = !desc.bias.IsZero();
  problem.adds = attributes.post_ops.HasSum();
  FlattenPixels(&problem.geometry, problem.src.spatial, problem.dst.spatial);
  return problem;
}

using Operands = WeightsGradientDriver::Operands;

Operands OperandsOf(const DrivenRun& run) {
  return {run.First<const float>(kArgSrc), run.First<const float>(kArgDiffDst),
          run.First<float>(kArgDiffWeights), run.First<float>(kArgDiffBias)};
}

// A driver that reads src, or, where `pixels` is there, their copy at the start of the scratchpad.
struct DenseGradient {
  int64_t copy_bytes() const {
    if (!pixels) return 0;
    return RoundUp(pixels->floats() * int64_t{sizeof(float)}, AlignedBuffer::kAlignment);
  }
  int64_t scratchpad_bytes() const { return copy_bytes() + driver.scratchpad_bytes(); }
  int64_t code_bytes() const { return driver.code_bytes(); }

  void Run(Operands operands, std::byte* scratchpad, const threading::Team& team) const {
    if (pixels) {
      auto* const copy = reinterpret_cast<float*>(scratchpad);
      pixels->Run(operands.src, copy, team);
      operands.src = copy;
    }
    driver.Run(operands, scratchpad + copy_bytes(), team);
  }

  std::optional<DensePixels> pixels;
  WeightsGradientDriver driver;
};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBackwardWeights(const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  const Geometry geometry = GeometryOf(request.desc);
  const int64_t lanes = unit.lanes();
  if (geometry.groups > 1 && (geometry.ic % lanes != 0 || geometry.oc % lanes != 0)) {
    return Unimplemented("takes groups of multiples of ", lanes, " channels, not of ", geometry.ic,
                         " and ", geometry.oc);
  }
  return Resolved(request.desc, unit);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardWeights(
    const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const WeightsGradientProblem problem = GradientProblemOf(request.desc, request.attributes, unit);
  std::optional<DensePixels> pixels;
  if (DensePixels::Take(problem)) pixels.emplace(problem);
  ABSL_ASSIGN_OR_RETURN(
      WeightsGradientDriver driver,
      WeightsGradientDriver::Create(request.facts.name, pixels ? pixels->dense() : problem));
  DenseGradient gradient = {std::move(pixels), std::move(driver)};
  PrimitiveInfo info = GradientInfoOf(request);
  info.scratchpad_bytes = gradient.scratchpad_bytes();
  return MakeDriven(std::move(info), std::move(gradient),
                    [](const DenseGradient& its, const DrivenRun& run) {
                      its.Run(OperandsOf(run), run.scratchpad, run.team);
                    });
}

absl::StatusOr<ConvolutionDesc> ResolveBackwardWeightsDepthwise(
    const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  if (!GeometryOf(request.desc).IsDepthwise()) return Unimplemented("is for one channel a group");
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc resolved,
                        ResolveLayouts(request.desc, unit, WeightsKind::kDepthwise));
  for (const MemoryDesc* tensor : {&resolved.src, &resolved.dst}) {
    if (!IsChannelBlocked(*tensor, unit.lanes()) && !HasWholeVectors(*tensor, unit.lanes()))
      return RefuseLayout("src or dst", *tensor);
  }
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardWeightsDepthwise(
    const Request<ConvolutionDesc>& request) {
  constexpr int kFirstTap = 3;  // dimension of weights
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  WeightsGradientProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  problem.src = StridesOf(desc.src, unit.lanes(), 1);
  problem.dst = StridesOf(desc.dst, unit.lanes(), 1);
  problem.weights = {.oc_block = desc.weights.stride(0),
                     .taps = SpatialStrides(desc.weights, kFirstTap),
                     .floats = desc.weights.PaddedElementCount()};
  problem.has_bias = !desc.bias.IsZero();
  problem.adds = request.attributes.post_ops.HasSum();
  ABSL_ASSIGN_OR_RETURN(DepthwiseWeightsGradient driver,
                        DepthwiseWeightsGradient::Create(request.facts.name, problem));
  return MakeDriven(GradientInfoOf(request), std::move(driver),
                    [](const DepthwiseWeightsGradient& its, const DrivenRun& run) {
                      its.Run(OperandsOf(run), run.team);
                    });
}

}  // namespace tilewire::convolution
