// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/report/answers.h"

#include <cmath>

#include "absl/algorithm/container.h"
#include "engine/base/status_macros.h"

namespace tilewire::tuning {
namespace {

// -1: no class, a NaN is among them.
int64_t ClassOf(const OutputFloats& output) {
  const std::vector<float>& elements = output.elements;
  if (absl::c_any_of(elements, [](float element) { return std::isnan(element); })) return -1;
  return absl::c_max_element(elements) - elements.begin();
}

int64_t TunedClass(const OutputPairs& pairs, size_t i) {
  return pairs.tuned[i].dims == pairs.exact[i].dims ? ClassOf(pairs.tuned[i]) : -1;
}

// Numbers from 0 to 1 with the sum 1 are probabilities already.
bool IsOfProbabilities(const std::vector<float>& elements) {
  constexpr double kRounding = 1e-3;
  double sum = 0;
  for (float element : elements) {
    if (!(element >= 0 && element <= 1 + kRounding)) return false;
    sum += element;
  }
  return std::fabs(sum - 1) <= kRounding;
}

double ProbabilityOf(int64_t label, const OutputFloats& output) {
  if (label < 0) return 0;
  const std::vector<float>& elements = output.elements;
  if (IsOfProbabilities(elements)) return elements[label];
  const double largest = *absl::c_max_element(elements);
  double sum = 0;
  for (float element : elements) sum += std::exp(element - largest);
  return std::exp(elements[label] - largest) / sum;
}

}  // namespace

bool HaveClasses(absl::Span<const OutputFloats> outputs) {
  return absl::c_all_of(outputs, [](const OutputFloats& output) {
    return output.dims.size() >= 2 && output.dims[1] > 1 &&
           output.dims[1] == static_cast<int64_t>(output.elements.size());
  });
}

absl::Status CheckLabels(absl::Span<const int64_t> labels, absl::Span<const int64_t> examples,
                         absl::Span<const OutputFloats> outputs) {
  if (!HaveClasses(outputs)) {
    return InvalidArgument("labels are classes of examples, and the output of example ",
                           examples[0], " is ", DimsToString(outputs[0].dims),
                           ", not a number for each class");
  }
  for (size_t i = 0; i < examples.size(); ++i) {
    const int64_t label = labels[examples[i]], classes = outputs[i].dims[1];
    if (label >= 0 && label < classes) continue;
    return InvalidArgument("the label of example ", examples[i], " is ", label,
                           "; the model has the classes 0 to ", classes - 1);
  }
  return absl::OkStatus();
}

std::vector<ChangedAnswer> ChangedAnswers(const OutputPairs& pairs,
                                          absl::Span<const int64_t> labels) {
  std::vector<ChangedAnswer> changed;
  for (size_t i = 0; i < pairs.examples.size(); ++i) {
    ChangedAnswer answer{.example = pairs.examples[i],
                         .exact_class = ClassOf(pairs.exact[i]),
                         .tuned_class = TunedClass(pairs, i)};
    if (answer.exact_class == answer.tuned_class) continue;
    answer.exact_probability = ProbabilityOf(answer.exact_class, pairs.exact[i]);
    answer.tuned_probability = ProbabilityOf(answer.tuned_class, pairs.tuned[i]);
    if (!labels.empty()) answer.label = labels[answer.example];
    changed.push_back(answer);
  }
  return changed;
}

Accuracy AccuracyOf(const OutputPairs& pairs, absl::Span<const int64_t> labels) {
  Accuracy accuracy{.examples = static_cast<int64_t>(pairs.examples.size())};
  for (size_t i = 0; i < pairs.examples.size(); ++i) {
    const int64_t label = labels[pairs.examples[i]];
    accuracy.exact_right += ClassOf(pairs.exact[i]) == label;
    accuracy.tuned_right += TunedClass(pairs, i) == label;
  }
  accuracy.exact_interval = WilsonInterval(accuracy.exact_right, accuracy.examples);
  accuracy.tuned_interval = WilsonInterval(accuracy.tuned_right, accuracy.examples);
  return accuracy;
}

}  // namespace tilewire::tuning
