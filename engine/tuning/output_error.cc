// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/output_error.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace tilewire::tuning {
namespace {

// The index of the largest of `count` elements that are `stride` apart; the first of equals. -1 if
// one is NaN.
int64_t IndexOfLargest(const float* elements, int64_t count, int64_t stride) {
  int64_t best = 0;
  for (int64_t i = 0; i < count; ++i) {
    if (std::isnan(elements[i * stride])) return -1;
    if (elements[i * stride] > elements[best * stride]) best = i;
  }
  return best;
}

double PoissonProbability(double mean, int64_t count) {
  if (mean == 0) return count == 0 ? 1 : 0;
  const auto k = static_cast<double>(count);
  return std::exp(k * std::log(mean) - mean - std::lgamma(k + 1));
}

}  // namespace

void OutputError::CountChanged(const OutputFloats& exact, absl::Span<const float> other,
                               int64_t label) {
  if (exact.dims.size() < 2) return;
  const int64_t classes = exact.dims[1];
  int64_t inner = 1;
  for (size_t d = 2; d < exact.dims.size(); ++d) inner *= exact.dims[d];
  for (int64_t n = 0; n < exact.dims[0]; ++n) {
    for (int64_t i = 0; i < inner; ++i) {
      const int64_t at = n * classes * inner + i;
      ++places_;
      const int64_t before = IndexOfLargest(&exact.elements[at], classes, inner);
      const int64_t after = IndexOfLargest(&other[at], classes, inner);
      if (before == after) continue;
      ++changed_;
      right_.worse += before == label;
      right_.better += after == label && label >= 0;  // a NaN has no class, either
    }
  }
}

void OutputError::Add(const OutputFloats& exact, const OutputFloats& other, int64_t label) {
  // Dims may follow from elements: the count of the boxes that are kept.
  if (other.dims != exact.dims) {
    differences_ = std::numeric_limits<double>::infinity();
    const float nan = std::numeric_limits<float>::quiet_NaN();
    return Add(exact, {exact.dims, std::vector<float>(exact.elements.size(), nan)}, label);
  }
  for (size_t i = 0; i < exact.elements.size(); ++i) {
    const double y = exact.elements[i], difference = other.elements[i] - y;
    lowest_ = elements_ == 0 ? y : std::min(lowest_, y);
    highest_ = elements_ == 0 ? y : std::max(highest_, y);
    ++elements_;
    squares_ += y * y;
    differences_ +=
        std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference * difference;
  }
  ++examples_;
  CountChanged(exact, other.elements, label);
}

AnswerCounts OutputError::CountsOf(ErrorMeasure measure) const {
  return measure == ErrorMeasure::kAccuracyDrop ? right_ : AnswerCounts{.worse = changed_};
}

OutputError ErrorOf(const OutputPairs& pairs, absl::Span<const int64_t> labels) {
  OutputError error;
  for (size_t i = 0; i < pairs.tuned.size(); ++i)
    error.Add(pairs.exact[i], pairs.tuned[i], labels.empty() ? -1 : labels[pairs.examples[i]]);
  return error;
}

MeasuredError OutputError::Of(ErrorMeasure measure) const {
  MeasuredError error{.examples = examples_};
  switch (measure) {
    case ErrorMeasure::kTop1Changed:
      if (places_ > 0) error.value = static_cast<double>(changed_) / static_cast<double>(places_);
      if (places_ == examples_ && places_ > 0) error.interval = WilsonInterval(changed_, places_);
      break;
    case ErrorMeasure::kAccuracyDrop:
      if (places_ == 0) break;
      error.value =
          static_cast<double>(right_.worse - right_.better) / static_cast<double>(places_);
      error.interval = DropInterval(right_.worse, right_.better, places_);
      break;
    case ErrorMeasure::kL2:
      if (differences_ > 0) error.value = std::sqrt(differences_ / squares_);
      break;
    case ErrorMeasure::kPsnr: {
      const double peak = highest_ - lowest_, mean = differences_ / static_cast<double>(elements_);
      error.value = differences_ > 0 ? 10 * std::log10(peak * peak / mean)
                                     : std::numeric_limits<double>::infinity();
      break;
    }
  }
  return error;
}

double ProbabilityToKeep(AnswerCounts stretched, int64_t examples, int64_t other, double limit) {
  const double count = static_cast<double>(other);
  const double part = count / static_cast<double>(examples) / kStretch;
  const double worse = static_cast<double>(stretched.worse) * part;
  const double better = static_cast<double>(stretched.better) * part;
  // Rounding must not take the last answer away that the limit allows.
  const auto most = static_cast<int64_t>(limit * count + 1e-9);
  // Each better answer lets one more be worse.
  double probability = 0, few_worse = 0;
  for (int64_t k = 0; k < most; ++k) few_worse += PoissonProbability(worse, k);
  for (int64_t gained = 0; gained <= other; ++gained) {
    few_worse += PoissonProbability(worse, most + gained);
    probability += PoissonProbability(better, gained) * few_worse;
  }
  return std::min(probability, 1.0);
}

OutputFloats Stretched(const OutputFloats& y, const OutputFloats& z) {
  OutputFloats stretched = y;
  for (size_t i = 0; i < y.elements.size(); ++i)
    stretched.elements[i] += kStretch * (z.elements[i] - y.elements[i]);
  return stretched;
}

}  // namespace tilewire::tuning
