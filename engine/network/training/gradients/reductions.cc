// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <utility>
#include <variant>
#include <vector>

#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

// The gradient of an operation that needs its source beside dy, or its result.
template <typename Gradient>
absl::Status AppendGradientWith(ValueId saved, Gradient gradient, GradientContext& context) {
  context.Add(0, context.Append(std::move(gradient), {context.gradient(), saved},
                                context.dims(context.src())));
  return absl::OkStatus();
}

// dy * `factor`, repeated over the elements that were reduced.
absl::Status AppendRepeated(float factor, GradientContext& context) {
  const ValueId dy = context.gradient();
  const ValueId scaled = factor == 1 ? dy : context.Scale(dy, factor);
  context.Add(0, context.Repeat(scaled, context.dims(context.src())));
  return absl::OkStatus();
}

// dy * slope(x)
absl::Status AppendSloped(ValueId slope, GradientContext& context) {
  context.Add(0, context.Compute(Function::kMul, {slope, context.gradient()}));
  return absl::OkStatus();
}

// Taps of a source's element: the results that read it, and their weights for it.
struct Readers {
  std::vector<int64_t> results;
  std::vector<float> weights;
};

std::vector<Readers> ReadersOf(const Interpolate& interpolate, int64_t size) {
  std::vector<Readers> readers(size);
  for (size_t i = 0; i < interpolate.indices.size(); ++i) {
    if (interpolate.weights[i] == 0) continue;
    Readers& of = readers[interpolate.indices[i]];
    of.results.push_back(static_cast<int64_t>(i) / interpolate.taps);
    of.weights.push_back(interpolate.weights[i]);
  }
  return readers;
}

}  // namespace

absl::Status AppendGradients(const Pooling& pooling, GradientContext& context) {
  const bool is_max = pooling.algorithm == Pooling::Algorithm::kMax;
  PoolingGradient gradient{pooling};
  std::vector<ValueId> srcs = {context.gradient()};
  if (is_max) {
    gradient.forward.saves_places = true;
    std::get<Pooling>(context.forward().params).saves_places = true;
    srcs.push_back(pooling.saves_places
                       ? context.more_dst(0)
                       : context.AppendForwardResult(DataType::kS32, context.dims(context.dst())));
  }
  context.Add(0, context.Append(std::move(gradient), std::move(srcs), context.dims(context.src())));
  return absl::OkStatus();
}

absl::Status AppendGradients(const Reduce& reduce, GradientContext& context) {
  const ValueId x = context.src();
  switch (reduce.function) {
    case Reduce::Function::kSum:
      return AppendRepeated(1, context);
    case Reduce::Function::kMean: {
      const int64_t whole = *ElementCount(context.dims(x));
      const int64_t reduced = *ElementCount(context.dims(context.dst()));
      return AppendRepeated(static_cast<float>(static_cast<double>(reduced) / whole), context);
    }
    case Reduce::Function::kSumOfAbs:
      return AppendSloped(context.Compute(Function::kSign, {x}), context);
    case Reduce::Function::kSumOfSquares:
      return AppendSloped(context.Scale(x, 2), context);
    case Reduce::Function::kMax:
    case Reduce::Function::kMin:
    case Reduce::Function::kProduct:
      break;
  }
  return AppendGradientWith(x, ReduceGradient{reduce.function}, context);
}

absl::Status AppendGradients(const Softmax& softmax, GradientContext& context) {
  return AppendGradientWith(context.dst(), SoftmaxGradient{softmax.axis}, context);
}

absl::Status AppendGradients(const Lrn& lrn, GradientContext& context) {
  return AppendGradientWith(context.src(), LrnGradient{lrn}, context);
}

// The transposed weights: again an interpolation, with as many taps as results read an element.
absl::Status AppendGradients(const Interpolate& interpolate, GradientContext& context) {
  const Dims dims = context.dims(context.src());
  const std::vector<Readers> readers = ReadersOf(interpolate, dims[interpolate.axis]);
  Interpolate transposed{.axis = interpolate.axis, .taps = 1};
  for (const Readers& of : readers)
    transposed.taps = std::max(transposed.taps, static_cast<int64_t>(of.results.size()));
  for (const Readers& of : readers) {
    const size_t more = static_cast<size_t>(transposed.taps) - of.results.size();
    const int64_t spare = of.results.empty() ? 0 : of.results[0];
    transposed.indices.insert(transposed.indices.end(), of.results.begin(), of.results.end());
    transposed.indices.insert(transposed.indices.end(), more, spare);
    transposed.weights.insert(transposed.weights.end(), of.weights.begin(), of.weights.end());
    transposed.weights.insert(transposed.weights.end(), more, 0.0f);
  }
  context.Add(0, context.Append(std::move(transposed), {context.gradient()}, dims));
  return absl::OkStatus();
}

}  // namespace tilewire::network
