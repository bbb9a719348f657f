// SPDX-License-Identifier: Apache-2.0
//
// The f32 inner product by planes of bf16: weights and layouts are those of the packed rows, images
// the rows of one product.
#include <limits>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/kernels/planes/plane_product.h"
#include "engine/primitives/creation.h"
#include "engine/primitives/inner_product/implementations.h"
#include "engine/primitives/plane_primitive.h"

namespace tilewire::inner_product {
namespace {

constexpr int64_t kNumberBytes = sizeof(float);

}  // namespace

absl::StatusOr<InnerProductDesc> ResolvePlanes(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  constexpr int64_t kFewestNumbers = 32, kMostNumbers = 1 << 16, kFewestOutputs = 16;
  InnerProductDesc unsplit = desc;
  unsplit.weights = desc.weights.Unsplit();
  ABSL_ASSIGN_OR_RETURN(InnerProductDesc resolved, ResolvePacked(request.With(unsplit)));
  const int64_t numbers = resolved.src.stride(0);
  if (numbers < kFewestNumbers || numbers > kMostNumbers || desc.dst.dim(1) < kFewestOutputs)
    return Unimplemented("is for 32 to 65536 numbers and from 16 outputs on");
  if (resolved.dst.stride(0) > std::numeric_limits<int32_t>::max() / 64 / kNumberBytes)
    return Unimplemented("strides exceed 32-bit displacements");
  const PlaneLayout layout = {.planes = PlanesFor(request.facts.traits.precision),
                              .matrices = 1,
                              .outputs = desc.dst.dim(1),
                              .taps = 1,
                              .channels = numbers};
  ABSL_ASSIGN_OR_RETURN(resolved.weights, PlaneWeightsOf(desc.weights, resolved.weights, layout));
  return resolved;
}

absl::StatusOr<std::unique_ptr<Primitive>> CreatePlanes(const Request<InnerProductDesc>& request) {
  const InnerProductDesc& desc = request.desc;
  const int64_t numbers = desc.src.stride(0);
  const PlaneProductShape shape = {
      .planes = PlanesFor(request.facts.traits.precision),
      .rows = desc.src.dim(0),
      .channels = numbers,
      .outputs = desc.dst.dim(1),
      .weights_are_split = desc.weights.IsOpaque(),
      .weights_output_block = numbers * kPlaneLanes * kNumberBytes,
      .dst_row = desc.dst.stride(0) * kNumberBytes,
      .bias = !desc.bias.IsZero(),
      .post_ops = request.attributes.post_ops,
  };
  ABSL_ASSIGN_OR_RETURN(auto product, PlaneProduct::Create(request.facts.name, shape, {{}}, {{}}));
  return MakePlanePrimitive<DensePlaneRows>(InfoOf(request), numbers * kNumberBytes,
                                            std::move(product));
}

}  // namespace tilewire::inner_product
