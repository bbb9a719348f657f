// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <functional>

#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

// The sum of a loss and its gradient, and what a mean divides them by.
struct LossSum {
  double loss = 0, divisor = 0;
  Elements gradient;
};

LossSum OfElements(const network::Loss& loss, const Shaped& src, const Elements& t) {
  const Elements& x = src.elements;
  LossSum sum;
  size_t after_classes = 1;
  for (size_t d = 2; d < src.dims.size(); ++d) after_classes *= src.dims[d];
  for (size_t i = 0; i < x.size(); ++i) {
    const double d = x[i] - t[i];
    const bool is_far = std::abs(d) > loss.delta;
    const std::vector<float>& weights = loss.class_weights;
    const double weight = weights.empty() ? 1 : weights[i / after_classes % weights.size()];
    switch (loss.function) {
      case network::Loss::Function::kBinaryCrossEntropy:
        sum.loss += weight * (std::log1p(std::exp(x[i])) - x[i] * t[i]);
        sum.gradient.push_back(weight * (1 / (1 + std::exp(-x[i])) - t[i]));
        break;
      case network::Loss::Function::kHuber:
        sum.loss += is_far ? loss.delta * (std::abs(d) - loss.delta / 2) : d * d / 2;
        sum.gradient.push_back(is_far ? std::copysign(loss.delta, d) : d);
        break;
      default:
        sum.loss += d * d;
        sum.gradient.push_back(2 * d);
    }
  }
  sum.divisor = static_cast<double>(x.size());
  return sum;
}

// A position of x [N, C, d...] is given by the place of its first class and the distance of the
// next.
void AddPosition(const network::Loss& loss, const Shaped& x, int64_t first, int64_t step,
                 const std::function<double(int64_t)>& target, LossSum* sum) {
  const int64_t classes = x.dims[1];
  double exponentials = 0, weight = 0;
  for (int64_t c = 0; c < classes; ++c) exponentials += std::exp(x.elements[first + c * step]);
  const auto q = [&](int64_t c) {
    const double factor = loss.class_weights.empty() ? 1 : loss.class_weights[c];
    return factor * ((1 - loss.label_smoothing) * target(c) +
                     loss.label_smoothing / static_cast<double>(classes));
  };
  for (int64_t c = 0; c < classes; ++c) {
    weight += q(c);
    sum->loss -= q(c) * (x.elements[first + c * step] - std::log(exponentials));
  }
  for (int64_t c = 0; c < classes; ++c) {
    const double p = std::exp(x.elements[first + c * step]) / exponentials;
    sum->gradient[first + c * step] = p * weight - q(c);
  }
}

LossSum OfClasses(const network::Loss& loss, const Operands& operands) {
  const Shaped &x = operands.srcs[0], &t = operands.srcs[1];
  const int64_t classes = x.dims[1];
  const auto count = static_cast<int64_t>(x.elements.size());
  const int64_t positions = count / x.dims[0] / classes;
  LossSum sum{0, 0, Elements(x.elements.size(), 0)};
  for (int64_t i = 0; i < x.dims[0] * positions; ++i) {
    const int64_t first = i / positions * classes * positions + i % positions;
    if (operands.src_types[1] == DataType::kF32) {
      const auto probability = [&](int64_t c) { return t.elements[first + c * positions]; };
      AddPosition(loss, x, first, positions, probability, &sum);
      sum.divisor += 1;
      continue;
    }
    const auto label = static_cast<int64_t>(t.elements[i]);
    if (label == loss.ignore_index) continue;
    const auto one = [label](int64_t c) { return c == label ? 1.0 : 0.0; };
    AddPosition(loss, x, first, positions, one, &sum);
    sum.divisor += loss.class_weights.empty() ? 1 : loss.class_weights[label];
  }
  return sum;
}

}  // namespace

std::vector<Elements> ComputeAll(const network::Loss& loss, const Operands& operands) {
  const bool has_classes = loss.function == network::Loss::Function::kSoftmaxCrossEntropy;
  LossSum sum = has_classes ? OfClasses(loss, operands)
                            : OfElements(loss, operands.srcs[0], operands.srcs[1].elements);
  const double factor = loss.factor / (loss.mean ? sum.divisor : 1);
  for (double& element : sum.gradient) element *= factor;
  if (!loss.gives_gradient) return {{sum.loss * factor}};
  return {{sum.loss * factor}, std::move(sum.gradient)};
}

}  // namespace tilewire::testing
