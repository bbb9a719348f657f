// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

// The sum of dy over everything but its channels, where weights have no gradient that brings it: of
// rows first, because a sum of f32 that has all pixels of a batch as its terms rounds more.
ValueId SumOfChannels(GradientContext& context) {
  const Dims dims = context.dims(context.gradient());
  Dims rows = dims, channels(dims.size(), 1);
  rows.back() = 1;
  channels[1] = dims[1];
  ValueId sum = context.gradient();
  for (const Dims& reduced : {rows, channels}) {
    if (context.dims(sum) != reduced)
      sum = context.Append(Reduce{Reduce::Function::kSum}, {sum}, reduced);
  }
  return context.Append(Reshape{}, {sum}, {dims[1]});
}

// The dims of side i as if it had a matrix for each one of the result; its own where one product
// sums over the whole batch, as it does by weights that all share.
Dims DimsOfProducts(size_t i, const GradientContext& context) {
  const Dims dims = context.dims(context.src(i)), other = context.dims(context.src(1 - i));
  Dims each = context.dims(context.dst());
  const auto lead = static_cast<int64_t>(each.size()) - 2;
  const bool is_one =
      std::all_of(dims.begin(), dims.begin() + lead, [](int64_t size) { return size == 1; });
  const bool is_whole = std::equal(other.begin(), other.begin() + lead, each.begin());
  if (i == 1 && is_one && is_whole) return dims;
  std::copy(dims.begin() + lead, dims.end(), each.begin() + lead);
  return each;
}

}  // namespace

absl::Status AppendGradients(const ComputedConvolution& convolution, GradientContext& context) {
  const ValueId dy = context.gradient(), src = context.src(0), weights = context.src(1);
  if (context.Wants(0)) {
    context.Add(
        0, context.Append(ConvolutionDataGradient{convolution}, {dy, weights}, context.dims(src)));
  }
  const bool by_bias = context.src_count() > 2 && context.Wants(2);
  if (context.Wants(1)) {
    const ValueId by_weights = context.Append(ConvolutionWeightsGradient{convolution, by_bias},
                                              {dy, src}, context.dims(weights));
    if (by_bias) context.Add(2, context.AppendResult(context.dims(context.src(2))));
    context.Add(1, by_weights);
  } else if (by_bias) {
    context.Add(2, SumOfChannels(context));
  }
  return absl::OkStatus();
}

// The convolution of which it is the gradient by src takes dy in the place of its src.
absl::Status AppendGradients(const ComputedDeconvolution& deconvolution, GradientContext& context) {
  const ComputedConvolution& convolution = deconvolution.convolution;
  const ValueId dy = context.gradient(), src = context.src(0), weights = context.src(1);
  if (context.Wants(0))
    context.Add(0, context.Append(convolution, {dy, weights}, context.dims(src)));
  if (context.Wants(1)) {
    context.Add(1, context.Append(ConvolutionWeightsGradient{convolution}, {src, dy},
                                  context.dims(weights)));
  }
  if (context.src_count() > 2 && context.Wants(2)) context.Add(2, SumOfChannels(context));
  return absl::OkStatus();
}

absl::Status AppendGradients(const Matmul&, GradientContext& context) {
  for (size_t i : {0, 1}) {
    if (!context.Wants(i)) continue;
    const ValueId products =
        context.Append(MatmulGradient{.by_second = i == 1},
                       {context.gradient(), context.src(1 - i)}, DimsOfProducts(i, context));
    context.Add(i, context.SumTo(products, context.dims(context.src(i))));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::network
