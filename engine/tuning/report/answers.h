// SPDX-License-Identifier: Apache-2.0
//
// The answers of a tuned model beside those of the exact one: for each example the class whose
// element is the largest along dimension 1, the first of equals. Pure functions.
#ifndef ENGINE_TUNING_REPORT_ANSWERS_H_
#define ENGINE_TUNING_REPORT_ANSWERS_H_

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/types/span.h"
#include "engine/tuner.h"
#include "engine/tuning/output_error.h"

namespace tilewire::tuning {

// Whether each output is of one example's classes: [1, C], or with further dimensions of 1; C > 1.
bool HaveClasses(absl::Span<const OutputFloats> outputs);

// `labels` are of all examples of a tuning, for those of these outputs.
//   kInvalidArgument  outputs without classes, a label that is not one of them; with its example
absl::Status CheckLabels(absl::Span<const int64_t> labels, absl::Span<const int64_t> examples,
                         absl::Span<const OutputFloats> outputs);

// The answers that differ, in the order of the examples; `labels` may be empty. Both outputs have
// classes. A tuned output with NaN or of other dims has the class -1.
std::vector<ChangedAnswer> ChangedAnswers(const OutputPairs& pairs,
                                          absl::Span<const int64_t> labels);

// At least one pair, with labels that fit.
Accuracy AccuracyOf(const OutputPairs& pairs, absl::Span<const int64_t> labels);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_REPORT_ANSWERS_H_
