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
#include "engine/primitives/convolution/direct/regrouping.h"
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

// Whether every group begins at the first lane of a block.
bool GroupsFillBlocks(const Geometry& geometry, int64_t lanes) {
  return geometry.groups == 1 || (geometry.ic % lanes == 0 && geometry.oc % lanes == 0);
}

// src and diff_dst as they are, or copies whose groups begin at the first lane of a block.
struct AlignedGroups {
  Regrouping src, dst;
  int64_t scratch_bytes() const { return src.scratch_bytes + dst.scratch_bytes; }
};

absl::StatusOr<AlignedGroups> AlignedGroupsOf(absl::string_view name, const ConvolutionDesc& desc,
                                              const VectorUnit& unit) {
  AlignedGroups aligned;
  const int64_t groups = GeometryOf(desc).groups;
  ABSL_ASSIGN_OR_RETURN(aligned.src, Regrouping::Of(name, desc.src, groups, unit, {.in = true}));
  ABSL_ASSIGN_OR_RETURN(aligned.dst, Regrouping::Of(name, desc.dst, groups, unit, {.in = true}));
  return aligned;
}

WeightsGradientProblem GradientProblemOf(const ConvolutionDesc& desc, const AlignedGroups& aligned,
                                         const Attributes& attributes, const VectorUnit& unit) {
  WeightsGradientProblem problem{.geometry = GeometryOf(desc), .unit = unit};
  const Geometry& geometry = problem.geometry;
  const int lanes = unit.lanes(), group = geometry.grouped_weights ? 1 : 0;
  const auto of_group = [&](const Regrouping& tensor, int64_t channels) {
    return tensor.in ? RoundUp(channels, lanes) : channels;
  };
  problem.src = StridesOf(aligned.src.blocks, lanes, of_group(aligned.src, geometry.ic));
  problem.dst = StridesOf(aligned.dst.blocks, lanes, of_group(aligned.dst, geometry.oc));
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

// The driver and the copies that it reads: of src and diff_dst where their groups do not fill their
// blocks, and of the pixels of src where strides leave some. They lie in the scratchpad, the
// pixels first.
struct DenseGradient {
  int64_t pixels_bytes() const {
    if (!pixels) return 0;
    return RoundUp(pixels->floats() * int64_t{sizeof(float)}, AlignedBuffer::kAlignment);
  }
  int64_t scratchpad_bytes() const {
    return pixels_bytes() + groups.scratch_bytes() + driver.scratchpad_bytes();
  }
  int64_t code_bytes() const {
    return driver.code_bytes() + groups.src.code_bytes() + groups.dst.code_bytes();
  }

  void Run(const DrivenRun& run) const {
    Operands operands = OperandsOf(run);
    std::byte* const src = run.scratchpad + pixels_bytes();
    std::byte* const dst = src + groups.src.scratch_bytes;
    Align(groups.src, kArgSrc, run, src, &operands.src);
    Align(groups.dst, kArgDiffDst, run, dst, &operands.diff_dst);
    auto* const copy = reinterpret_cast<float*>(run.scratchpad);
    std::byte* const rest = dst + groups.dst.scratch_bytes;
    if (pixels && driver.TakesCopies(run.team)) {
      const auto make = [&](int64_t image, float* of_image) {
        pixels->RunImage(operands.src, image, of_image);
      };
      return driver.RunOnCopies(operands, {make, copy}, rest, run.team);
    }
    if (pixels) {
      pixels->Run(operands.src, copy, run.team);
      operands.src = copy;
    }
    driver.Run(operands, rest, run.team);
  }

  static void Align(const Regrouping& regrouping, int arg, const DrivenRun& run, std::byte* copy,
                    const float** operand) {
    if (!regrouping.in) return;
    regrouping.in->Run({run.args.Get<const std::byte>(arg)}, copy, run.team);
    *operand = reinterpret_cast<const float*>(copy);
  }

  AlignedGroups groups;
  std::optional<DensePixels> pixels;
  WeightsGradientDriver driver;
};

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolveBackwardWeights(const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_RETURN_IF_ERROR(RequireDirectF32(request.desc, request.attributes));
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved, Resolved(request.desc, unit));
  if (!GroupsFillBlocks(GeometryOf(request.desc), unit.lanes()))
    ABSL_RETURN_IF_ERROR(RequireRegrouping(resolved, unit));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreateBackwardWeights(
    const Request<ConvolutionDesc>& request) {
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  ABSL_ASSIGN_OR_RETURN(AlignedGroups groups,
                        AlignedGroupsOf(request.facts.name, request.desc, unit));
  const WeightsGradientProblem problem =
      GradientProblemOf(request.desc, groups, request.attributes, unit);
  std::optional<DensePixels> pixels;
  if (DensePixels::Take(problem)) pixels.emplace(problem);
  ABSL_ASSIGN_OR_RETURN(
      WeightsGradientDriver driver,
      WeightsGradientDriver::Create(request.facts.name, pixels ? pixels->dense() : problem));
  DenseGradient gradient = {std::move(groups), std::move(pixels), std::move(driver)};
  PrimitiveInfo info = GradientInfoOf(request);
  info.scratchpad_bytes = gradient.scratchpad_bytes();
  return MakeDriven(std::move(info), std::move(gradient));
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
