// SPDX-License-Identifier: Apache-2.0
//
// The convolution by planes of bf16: one product per image and group, whose rows are pixels of
// dst (plane_windows.h). Any kernel, stride, dilation and padding is the same product.
#include <limits>
#include <utility>
#include <vector>

#include "engine/base/checked_math.h"
#include "engine/base/status_macros.h"
#include "engine/kernels/planes/plane_cost.h"
#include "engine/kernels/planes/plane_product.h"
#include "engine/primitives/convolution/direct/direct_layouts.h"
#include "engine/primitives/convolution/implementations.h"
#include "engine/primitives/convolution/planes/plane_windows.h"
#include "engine/primitives/convolution/requirements.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/plane_primitive.h"

namespace tilewire::convolution {
namespace {

absl::Status RequireNarrowWindows(const Geometry& geometry, int planes) {
  constexpr int64_t kMostChannels = 1 << 16;  // of all taps: what is split at a time stays small
  const PlaneProductShape shape = PlaneShapeOf(geometry, planes);
  if (shape.rows > 0 && shape.FlatChannels() <= kMostChannels) return absl::OkStatus();
  return Unimplemented("is for windows of up to 65536 numbers");
}

// Tensors of bf16 are for one plane.
absl::Status RequireTypes(const ConvolutionDesc& desc, const Attributes& attributes, int planes) {
  if (planes > 1) return RequireDirectF32(desc, attributes);
  ABSL_RETURN_IF_ERROR(RequireF32OrBf16(desc));
  if (desc.weights.data_type() != DataType::kF32) return Unimplemented("takes weights of f32 only");
  ABSL_RETURN_IF_ERROR(RequireNoOutputScales(attributes));
  return RequireDirect(desc);
}

absl::Status RequireWholeBlocks(const ConvolutionDesc& desc, const Geometry& geometry, int lanes) {
  const bool whole =
      geometry.ic % LanesOf(desc.src, lanes) == 0 && geometry.oc % LanesOf(desc.dst, lanes) == 0;
  if (geometry.groups == 1 || whole) return absl::OkStatus();
  return Unimplemented("takes groups of whole blocks of channels only");
}

// Pixels of dst follow each other at one distance, which displacements reach.
absl::Status RequireNeighbours(const Geometry& geometry, const ByteStrides& dst) {
  const Spatial& strides = dst.spatial;
  for (int d : {1, 0}) {
    if (geometry.out[d] > 1 && strides[d] != geometry.out[d + 1] * strides[d + 1])
      return Unimplemented("dst has gaps between its rows");
  }
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 64;
  if (strides[2] > kLargest || dst.block > 32 * kLargest)
    return Unimplemented("strides exceed 32-bit displacements");
  return absl::OkStatus();
}

// Where all pixels are one row without padding, tiles load a src of bf16 from where it lies.
int64_t RowInPlace(const ConvolutionDesc& desc, const Windows& windows) {
  const Geometry& geometry = windows.geometry;
  const int64_t row = windows.strides.spatial[2] * geometry.stride[2];
  const Spatial ones = {1, 1, 1}, none = {0, 0, 0};
  const bool one_row = geometry.kernel == ones && geometry.pad == none && geometry.in[0] == 1 &&
                       geometry.out[0] == 1 && geometry.out[1] == 1;
  constexpr int64_t kLargest = std::numeric_limits<int32_t>::max() / 64;
  const int64_t steps = DivUp(geometry.ic, kPlaneStep) * windows.strides.block;
  if (desc.src.data_type() != DataType::kBf16 || !one_row || row > kLargest || steps > kLargest)
    return 0;
  return row;
}

PlaneProductShape ProductOf(const ConvolutionDesc& desc, const Attributes& attributes,
                            const Windows& windows, const ByteStrides& dst, int planes) {
  const int group = windows.geometry.grouped_weights ? 1 : 0;
  PlaneProductShape shape = PlaneShapeOf(GeometryOf(desc), planes);
  shape.src_type = desc.src.data_type();
  shape.dst_type = desc.dst.data_type();
  shape.src_block = windows.strides.block;
  shape.src_row = RowInPlace(desc, windows);
  shape.weights_are_split = desc.weights.IsOpaque();
  shape.weights_block = desc.weights.stride(group + 1) * kFloatBytes;
  shape.weights_tap = kPlaneLanes * kPlaneLanes * kFloatBytes;
  shape.weights_output_block = desc.weights.stride(group) * kFloatBytes;
  shape.dst_row = dst.spatial[2];
  if (shape.strips.rows > std::numeric_limits<int32_t>::max() / shape.dst_row) shape.strips = {};
  shape.dst_block = dst.block;
  shape.packed_dst = desc.dst.IsPlain();
  shape.bias = !desc.bias.IsZero();
  shape.post_ops = attributes.post_ops;
  return shape;
}

}  // namespace

absl::StatusOr<ConvolutionDesc> ResolvePlanes(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const VectorUnit unit = VectorUnit::Of(request.facts.isa);
  const int lanes = unit.lanes(), planes = PlanesFor(request.facts.traits.precision);
  ABSL_RETURN_IF_ERROR(RequireTypes(desc, request.attributes, planes));
  const Geometry geometry = GeometryOf(desc);
  ABSL_RETURN_IF_ERROR(RequireWholeBlocks(desc, geometry, lanes));
  ABSL_RETURN_IF_ERROR(RequireNarrowWindows(geometry, planes));
  ConvolutionDesc numbers = desc;
  numbers.weights = desc.weights.Unsplit();
  ABSL_ASSIGN_OR_RETURN(ConvolutionDesc resolved,
                        ResolveLayouts(numbers, unit, WeightsKind::kDense));
  const int src_lanes = LanesOf(resolved.src, lanes);
  if (!IsChannelBlocked(resolved.src, src_lanes) && !HasWholeVectors(resolved.src, src_lanes))
    return RefuseLayout("src", resolved.src);
  ABSL_RETURN_IF_ERROR(
      RequireNeighbours(geometry, StridesOfBytes(resolved.dst, lanes, geometry.oc)));
  const PlaneLayout layout = PlaneShapeOf(geometry, planes).WeightsLayout(geometry.groups);
  ABSL_ASSIGN_OR_RETURN(resolved.weights, PlaneWeightsOf(desc.weights, resolved.weights, layout));
  return resolved;
}

double CostPlanes(const Request<ConvolutionDesc>& resolved) {
  const Geometry geometry = GeometryOf(resolved.desc);
  PlaneProductShape shape = PlaneShapeOf(geometry, PlanesFor(resolved.facts.traits.precision));
  shape.weights_are_split = resolved.desc.weights.IsOpaque();
  return ProductsCyclesByPlanes(shape, geometry.groups, resolved.machine);
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlanes(const Request<ConvolutionDesc>& request) {
  const ConvolutionDesc& desc = request.desc;
  const int lanes = VectorUnit::Of(request.facts.isa).lanes();
  const Geometry geometry = GeometryOf(desc);
  Windows windows = {geometry, StridesOfBytes(desc.src, lanes, geometry.ic)};
  const ByteStrides dst = StridesOfBytes(desc.dst, lanes, geometry.oc);
  FlattenPixels(&windows.geometry, windows.strides.spatial, dst.spatial);
  const PlaneProductShape shape =
      ProductOf(desc, request.attributes, windows, dst, PlanesFor(request.facts.traits.precision));
  windows.strip_rows = shape.strips.rows;
  const int64_t group_bytes = geometry.grouped_weights ? desc.weights.stride(0) * kFloatBytes : 0;
  std::vector<PlaneWeights> weights;
  std::vector<PlaneProduct::Item> items;
  for (int64_t g = 0; g < geometry.groups; ++g) {
    weights.push_back({.offset = g * group_bytes, .bias = g * geometry.oc * kFloatBytes});
    for (int64_t image = 0; image < geometry.batch; ++image)
      items.push_back({.product = image * geometry.groups + g,
                       .weights = g,
                       .dst = image * dst.image + g * dst.group});
  }
  ABSL_ASSIGN_OR_RETURN(auto product, PlaneProduct::Create(request.facts.name, shape,
                                                           std::move(weights), std::move(items)));
  return MakePlanePrimitive<WindowRows>(InfoOf(request), windows, std::move(product));
}

}  // namespace tilewire::convolution
