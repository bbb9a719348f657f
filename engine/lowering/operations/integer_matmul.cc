// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/strided_view.h"

namespace tilewire::lowering {
namespace {

// A factor with leading dimensions of 1 up to `rank`, where it lies if its strides can be followed.
absl::StatusOr<Place> Factor(OperationContext& context, int i, size_t rank) {
  ABSL_ASSIGN_OR_RETURN(const Place place, context.Home(context.src(i)));
  Dims dims = context.src_value(i).dims;
  dims.insert(dims.begin(), rank - dims.size(), 1);
  absl::StatusOr<MemoryDesc> view = StridedView(place.desc, dims);
  if (!view.ok()) return context.RowMajorOfRank(context.src(i), rank);
  return Place{place.buffer, *std::move(view)};
}

// The scale of the sums, and the zero point of the result.
absl::StatusOr<Attributes> AttributesOf(const network::IntegerMatmul& product) {
  Attributes attributes;
  const network::QuantizationParams dst =
      product.dst_quantization.value_or(network::QuantizationParams());
  attributes.output_scales.scales = {product.src_quantization.scale *
                                     product.weights_quantization.scale / dst.scale};
  if (dst.zero_point == 0) return attributes;
  ABSL_RETURN_IF_ERROR(attributes.post_ops.Append(
      EltwisePostOp{{EltwiseAlgorithm::kLinear, 1, static_cast<float>(dst.zero_point)}}));
  return attributes;
}

}  // namespace

absl::Status LowerIntegerMatmul(const network::IntegerMatmul& product, OperationContext& context) {
  const size_t rank = context.dst_value().dims.size();
  ABSL_ASSIGN_OR_RETURN(const Place src, Factor(context, 0, rank));
  ABSL_ASSIGN_OR_RETURN(const Place weights, Factor(context, 1, rank));
  MatmulDesc desc{.src = src.desc, .weights = weights.desc};
  desc.src_zero_point = product.src_quantization.zero_point;
  desc.weights_zero_point = product.weights_quantization.zero_point;
  ABSL_ASSIGN_OR_RETURN(desc.dst, ResultDesc(context));
  ABSL_ASSIGN_OR_RETURN(const Attributes attributes, AttributesOf(product));
  return context.EmitTo(desc.dst, context.Create(desc, attributes),
                        {{kArgSrc, src.buffer}, {kArgWeights, weights.buffer}});
}

// A product of two sides that are quantised in the run.
absl::Status LowerDynamicMatmul(const network::DynamicMatmul& product, OperationContext& context) {
  const size_t rank = context.dst_value().dims.size();
  ABSL_ASSIGN_OR_RETURN(const Place src, Factor(context, 0, rank));
  ABSL_ASSIGN_OR_RETURN(const Place src_range, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(const Place weights, Factor(context, 2, rank));
  ABSL_ASSIGN_OR_RETURN(const Place weights_range, context.RowMajor(context.src(3)));
  MatmulDesc desc{.src = src.desc, .weights = weights.desc};
  desc.range = src_range.desc;
  desc.weights_range = weights_range.desc;
  ABSL_ASSIGN_OR_RETURN(desc.dst, ResultDesc(context));
  Attributes attributes;
  attributes.output_scales.scales = {product.scale};
  return context.EmitTo(desc.dst, context.Create(desc, attributes),
                        {{kArgSrc, src.buffer},
                         {kArgWeights, weights.buffer},
                         {kArgQuantizationRange, src_range.buffer},
                         {kArgWeightsRange, weights_range.buffer}});
}

}  // namespace tilewire::lowering
