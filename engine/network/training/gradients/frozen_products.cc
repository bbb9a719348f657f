// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <vector>

#include "engine/base/status_macros.h"
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

// The weights as they are multiplied. Errors are those of StoredNumbers.
absl::StatusOr<std::vector<float>> Multiplied(const Weights& weights) {
  ABSL_ASSIGN_OR_RETURN(const HeldFloats held, LoadElements(weights));
  const int64_t rows = weights.dims[0];
  const int64_t columns = static_cast<int64_t>(held.values.size()) / rows;
  std::vector<float> effective;
  effective.reserve(held.values.size());
  for (int64_t row = 0; row < rows; ++row) {
    const float scale = weights.scale.empty() ? 1 : weights.scale[row];
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t at = weights.transposed ? column * rows + row : row * columns + column;
      effective.push_back(scale * held.values[at]);
    }
  }
  return effective;
}

absl::StatusOr<ValueId> AppendWeights(const Weights& weights, GradientContext& context) {
  ABSL_ASSIGN_OR_RETURN(std::vector<float> elements, Multiplied(weights));
  return context.AppendLiteral(MakeFloats(weights.key, weights.dims, std::move(elements)));
}

// The weights [O, I/groups, k...] of a deconvolution as those [I, O/groups, k...] of the
// convolution that its gradient by src is.
ValueId AppendExchanged(const Weights& weights, int64_t groups, const std::vector<float>& elements,
                        GradientContext& context) {
  const int64_t outputs = weights.dims[0] / groups, inputs = weights.dims[1];
  const int64_t taps = static_cast<int64_t>(elements.size()) / (weights.dims[0] * inputs);
  std::vector<float> exchanged(elements.size());
  for (int64_t o = 0; o < weights.dims[0]; ++o) {
    const int64_t group = o / outputs;
    for (int64_t i = 0; i < inputs; ++i) {
      const auto from = elements.begin() + (o * inputs + i) * taps;
      const int64_t to = ((group * inputs + i) * outputs + o % outputs) * taps;
      std::copy(from, from + taps, exchanged.begin() + to);
    }
  }
  Dims dims = weights.dims;
  dims[0] = inputs * groups;
  dims[1] = outputs;
  return context.AppendLiteral(MakeFloats(weights.key, dims, std::move(exchanged)));
}

//   kUnimplemented  it computes more than a sum of products and a bias
template <typename Product>
absl::Status RequirePlainProduct(const Product& product) {
  if constexpr (requires { product.src_quantization; }) {
    if (product.src_quantization || product.dst_quantization)
      return Unimplemented("integers have no gradients");
  }
  if (product.weights.s8 != nullptr) return Unimplemented("integers have no gradients");
  if (!product.fused.empty()) return Unimplemented("other operations were joined to it");
  return absl::OkStatus();
}

}  // namespace

absl::Status AppendGradients(const Convolution& convolution, GradientContext& context) {
  ABSL_RETURN_IF_ERROR(RequirePlainProduct(convolution));
  if (convolution.pooling) return Unimplemented("a pooling was joined to it");
  ABSL_ASSIGN_OR_RETURN(const ValueId weights, AppendWeights(convolution.weights, context));
  const ConvolutionDataGradient gradient{{convolution.groups, convolution.strides,
                                          convolution.dilations, convolution.padding_left,
                                          convolution.padding_right}};
  context.Add(0,
              context.Append(gradient, {context.gradient(), weights}, context.dims(context.src())));
  return absl::OkStatus();
}

// A convolution of dy.
absl::Status AppendGradients(const Deconvolution& deconvolution, GradientContext& context) {
  ABSL_RETURN_IF_ERROR(RequirePlainProduct(deconvolution));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> elements, Multiplied(deconvolution.weights));
  const ValueId weights =
      AppendExchanged(deconvolution.weights, deconvolution.groups, elements, context);
  const ComputedConvolution window{deconvolution.groups, deconvolution.strides,
                                   deconvolution.dilations, deconvolution.padding_left,
                                   deconvolution.padding_right};
  context.Add(0,
              context.Append(window, {context.gradient(), weights}, context.dims(context.src())));
  return absl::OkStatus();
}

absl::Status AppendGradients(const InnerProduct& product, GradientContext& context) {
  ABSL_RETURN_IF_ERROR(RequirePlainProduct(product));
  ABSL_ASSIGN_OR_RETURN(const ValueId weights, AppendWeights(product.weights, context));
  const Dims src = context.dims(context.src());
  const ValueId rows =
      context.Append(Matmul{}, {context.gradient(), weights}, {src[0], product.weights.dims[1]});
  context.Add(0, context.dims(rows) == src ? rows : context.Append(Reshape{}, {rows}, src));
  return absl::OkStatus();
}

}  // namespace tilewire::network
