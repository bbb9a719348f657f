// SPDX-License-Identifier: Apache-2.0
//
// The f32 convolution by planes of bf16: one product per image and group, whose rows are pixels of
// dst (plane_windows.h). Any kernel, stride, dilation and padding is the same product.
#include <limits>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/plane_cost.h"
#include "engine/kernels/plane_product.h"
#include "engine/primitives/convolution/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/plane_windows.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/convolution/winograd_choice.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/plane_primitive.h"

namespace tilewire::convolution {
namespace {

absl::Status RequireWorthwhile(const ConvolutionDesc& desc, const Geometry& geometry, int planes) {
  constexpr int64_t kMostChannels = 1 << 16;  // of all taps: what is split at a time stays small
  constexpr double kWorthwhile = 1.1;
  PlaneProductShape shape = PlaneShapeOf(geometry, planes);
  shape.weights_are_split = desc.weights.IsAny() || desc.weights.IsOpaque();
  if (shape.rows == 0 || shape.FlatChannels() > kMostChannels)
    return absl::UnimplementedError("is for windows of up to 65536 numbers");
  if (planes == 3 && SuitsWinograd(desc, geometry))
    ABSL_RETURN_IF_ERROR(RequirePlanesFasterThanWinograd(geometry));
  const double mine = PlaneCycles(shape), vectors = VectorCycles(shape);
  if (mine * kWorthwhile <= vectors) return absl::OkStatus();
  return absl::UnimplementedError(absl::StrCat("is estimated at ", static_cast<int64_t>(mine),
                                               " cycles per image and group, vectors at ",
                                               static_cast<int64_t>(vectors)));
}

// Pixels of dst follow each other at one distance, which displacements reach.
absl::Status RequireNeighbours(const Geometry& geometry, const ActivationStrides& dst) {
  const Spatial& strides = dst.spatial;
  for (int d : {1, 0}) {
    if (geometry.out[d] > 1 && strides[d] != geometry.out[d + 1] * strides[d + 1])
      return absl::UnimplementedError("dst has gaps between its rows");
  }
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 64 / kFloatBytes;
  if (strides[2] > kLargest || dst.block > 32 * kLargest)
    return absl::UnimplementedError("strides exceed 32-bit displacements");
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePlanes(const ConvolutionDesc& desc,
                                              const Attributes& attributes,
                                              const ImplementationFacts& facts) {
  const VectorUnit unit = VectorUnit::Of(facts.isa);
  const int lanes = unit.lanes();
  ABSL_RETURN_IF_ERROR(RequireDirectF32(desc, attributes));
  const Geometry geometry = GeometryOf(desc);
  if (geometry.groups > 1 && (geometry.ic % lanes != 0 || geometry.oc % lanes != 0))
    return absl::UnimplementedError("takes groups of whole blocks of channels only");
  ABSL_RETURN_IF_ERROR(RequireWorthwhile(desc, geometry, PlanesFor(facts.traits.precision)));
  ConvolutionDesc numbers = desc;
  numbers.weights = desc.weights.Unsplit();
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved,
                        ResolveLayouts(numbers, unit, WeightsKind::kDense));
  if (!IsChannelBlocked(resolved.src, lanes) && !HasWholeVectors(resolved.src, lanes))
    return RefuseLayout("src", resolved.src);
  ABSL_RETURN_IF_ERROR(RequireNeighbours(geometry, StridesOf(resolved.dst, lanes, geometry.oc)));
  const PlaneLayout layout =
      PlaneShapeOf(geometry, PlanesFor(facts.traits.precision)).WeightsLayout(geometry.groups);
  ABSL_ASSIGN_OR_RETURN(resolved.weights, PlaneWeightsOf(desc.weights, resolved.weights, layout));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlanes(const ConvolutionDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts) {
  const int lanes = VectorUnit::Of(facts.isa).lanes();
  Windows windows = {GeometryOf(desc), {}};
  const Geometry geometry = windows.geometry;
  windows.strides = StridesOf(desc.src, lanes, geometry.ic);
  const ActivationStrides dst = StridesOf(desc.dst, lanes, geometry.oc);
  FlattenPixels(&windows.geometry, windows.strides.spatial, dst.spatial);
  const int group = geometry.grouped_weights ? 1 : 0;
  PlaneProductShape shape = PlaneShapeOf(geometry, PlanesFor(facts.traits.precision));
  shape.src_block = windows.strides.block * kFloatBytes;
  shape.weights_are_split = desc.weights.IsOpaque();
  shape.weights_block = desc.weights.stride(group + 1) * kFloatBytes;
  shape.weights_tap = lanes * lanes * kFloatBytes;
  shape.weights_output_block = desc.weights.stride(group) * kFloatBytes;
  shape.dst_row = dst.spatial[2] * kFloatBytes;
  if (shape.strips.rows > std::numeric_limits<int32_t>::max() / shape.dst_row) shape.strips = {};
  windows.strip_rows = shape.strips.rows;
  shape.dst_block = dst.block * kFloatBytes;
  shape.packed_dst = desc.dst.IsPlain();
  shape.bias = !desc.bias.IsZero();
  shape.post_ops = attributes.post_ops;
  std::vector<PlaneWeights> weights;
  std::vector<PlaneProduct::Item> items;
  for (int64_t g = 0; g < geometry.groups; ++g) {
    weights.push_back({.offset = group == 0 ? 0 : g * desc.weights.stride(0) * kFloatBytes,
                       .bias = g * geometry.oc * kFloatBytes});
    for (int64_t image = 0; image < geometry.batch; ++image)
      items.push_back({.product = image * geometry.groups + g,
                       .weights = g,
                       .dst = (image * dst.image + g * dst.group) * kFloatBytes});
  }
  ABSL_ASSIGN_OR_RETURN(
      auto product, PlaneProduct::Create(facts.name, shape, std::move(weights), std::move(items)));
  return std::make_unique<PlanePrimitive<WindowRows>>(InfoOf(desc, attributes, facts), windows,
                                                      std::move(product));
}

}  // namespace tilewire::convolution
