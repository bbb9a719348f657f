// SPDX-License-Identifier: Apache-2.0
//
// The source becomes u8, with zero points around it where the convolution pads, by one step, and
// the convolution of integers is another one.
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/lowering/operation_table.h"
#include "engine/lowering/plan/strided_view.h"
#include "engine/lowering/weighted/weighted_operation.h"
#include "engine/runtime/tensor_layout.h"

namespace tilewire::lowering {
namespace {

// The steps after the sums, and the scales of the weights.
Fusion FusionOf(const WeightedOperation& operation) {
  Fusion fusion = PlanPostOps(operation.fused, operation.bias);
  fusion.attributes.output_scales = {.mask = 2, .scales = operation.weights.scale};
  return fusion;
}

absl::StatusOr<ConvolutionDesc> DescOf(const network::DynamicConvolution& convolution,
                                       const QuantizeDesc& quantize,
                                       const OperationContext& context) {
  const Dims none(convolution.strides.size(), 0);
  ConvolutionDesc desc{.strides = convolution.strides,
                       .dilations = convolution.dilations,
                       .padding_left = none,
                       .padding_right = none,
                       .range = quantize.range,
                       .weights_zero_point = convolution.weights.zero_point};
  const Dims weights = GroupedDims(convolution.weights.dims, convolution.groups);
  desc.src = quantize.dst;
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.AnyDesc(context.dst()));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny(weights, DataType::kS8));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(convolution.bias));
  return desc;
}

// From the source, with its channels last, to u8 with `left` and `right` zero points around it.
absl::StatusOr<QuantizeDesc> QuantizeDescOf(const MemoryDesc& range, const Dims& left,
                                            const Dims& right, const OperationContext& context) {
  QuantizeDesc desc{.range = range, .padding_left = left};
  Dims dims = context.src_value().dims;
  ABSL_ASSIGN_OR_RETURN(desc.src, runtime::PlainDesc(dims, DataType::kF32, /*channels_last=*/true));
  for (size_t i = 0; i < left.size(); ++i) dims[i + 2] += left[i] + right[i];
  ABSL_ASSIGN_OR_RETURN(desc.dst, runtime::PlainDesc(dims, DataType::kU8, /*channels_last=*/true));
  return desc;
}

// Appends the two steps, and consumes the sources. Returns where the result is.
absl::StatusOr<Place> EmitDynamic(const WeightedOperation& operation, const Fusion& fusion,
                                  const QuantizeDesc& quantize, const ConvolutionDesc& desc,
                                  const Place& range, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(auto to_integers, context.Create(quantize));
  ABSL_ASSIGN_OR_RETURN(auto primitive, context.Create(desc, fusion.attributes));
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), quantize.src));
  context.ConsumeSources();
  const Place integers = context.plan().NewPlace(quantize.dst);
  context.Emit(
      std::move(to_integers),
      {{kArgSrc, src.buffer}, {kArgQuantizationRange, range.buffer}, {kArgDst, integers.buffer}});
  return EmitWeightedFrom(integers, operation, fusion, std::move(primitive), context,
                          {{kArgQuantizationRange, range.buffer}});
}

// The rows of a matrix as the pixels of one image, which lie alike if its channels are last.
absl::StatusOr<MemoryDesc> PixelsOf(int64_t rows, int64_t size, DataType type) {
  return MemoryDesc::CreatePattern({1, size, rows}, type, "acb");
}

}  // namespace

absl::Status LowerQuantizationRange(const network::QuantizationRange&, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place src, context.DenseHome(context.src()));
  QuantizationRangeDesc desc{.src = src.desc};
  ABSL_ASSIGN_OR_RETURN(desc.dst, context.RowMajorDesc(context.dst()));
  return context.EmitUnary(context.Create(desc), src);
}

// In row-major order for products of matrices.
absl::Status LowerDynamicQuantize(const network::DynamicQuantize&, OperationContext& context) {
  ABSL_ASSIGN_OR_RETURN(const Place range, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(QuantizeDesc desc, QuantizeDescOf(range.desc, {}, {}, context));
  if (IsReadByStrides(context, context.dst())) {
    ABSL_ASSIGN_OR_RETURN(desc.src, context.RowMajorDesc(context.src()));
    ABSL_ASSIGN_OR_RETURN(desc.dst, context.RowMajorDesc(context.dst()));
  }
  ABSL_ASSIGN_OR_RETURN(const Place src, context.InLayout(context.src(), desc.src));
  context.plan().Consume(context.src(1));
  return context.EmitUnary(context.Create(desc), src, {{kArgQuantizationRange, range.buffer}});
}

absl::Status LowerDynamicConvolution(const network::DynamicConvolution& convolution,
                                     OperationContext& context) {
  const WeightedOperation operation(convolution);
  const Fusion fusion = FusionOf(operation);
  ABSL_ASSIGN_OR_RETURN(const Place range, context.RowMajor(context.src(1)));
  ABSL_ASSIGN_OR_RETURN(
      const QuantizeDesc quantize,
      QuantizeDescOf(range.desc, convolution.padding_left, convolution.padding_right, context));
  ABSL_ASSIGN_OR_RETURN(const ConvolutionDesc desc, DescOf(convolution, quantize, context));
  return context.BindResult(EmitDynamic(operation, fusion, quantize, desc, range, context));
}

// A convolution of one pixel at a time, over as many pixels as there are rows.
absl::Status LowerDynamicInnerProduct(const network::DynamicInnerProduct& product,
                                      OperationContext& context) {
  const WeightedOperation operation(product);
  const Fusion fusion = FusionOf(operation);
  const int64_t outputs = product.weights.dims[0], inputs = product.weights.dims[1];
  const int64_t rows = *ElementCount(context.src_value().dims) / inputs;
  ABSL_ASSIGN_OR_RETURN(const Place range, context.RowMajor(context.src(1)));
  QuantizeDesc quantize{.range = range.desc};
  ABSL_ASSIGN_OR_RETURN(quantize.src, context.RowMajorDesc(context.src()));
  ABSL_ASSIGN_OR_RETURN(quantize.dst, quantize.src.WithDataType(DataType::kU8));
  ConvolutionDesc desc{.strides = {1},
                       .dilations = {0},
                       .padding_left = {0},
                       .padding_right = {0},
                       .range = range.desc,
                       .weights_zero_point = product.weights.zero_point};
  ABSL_ASSIGN_OR_RETURN(desc.src, PixelsOf(rows, inputs, DataType::kU8));
  ABSL_ASSIGN_OR_RETURN(desc.dst, PixelsOf(rows, outputs, DataType::kF32));
  ABSL_ASSIGN_OR_RETURN(desc.weights, MemoryDesc::CreateAny({outputs, inputs, 1}, DataType::kS8));
  ABSL_ASSIGN_OR_RETURN(desc.bias, BiasDesc(product.bias));
  ABSL_ASSIGN_OR_RETURN(const Place result,
                        EmitDynamic(operation, fusion, quantize, desc, range, context));
  ABSL_ASSIGN_OR_RETURN(const MemoryDesc plain, context.RowMajorDesc(context.dst()));
  return context.BindResult(Place{result.buffer, plain});
}

}  // namespace tilewire::lowering
