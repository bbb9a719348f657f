// SPDX-License-Identifier: Apache-2.0
//
// Adds up how far outputs are from exact ones, example by example (engine/error_budget.h).
// Thread-compatible.
#ifndef ENGINE_TUNING_OUTPUT_ERROR_H_
#define ENGINE_TUNING_OUTPUT_ERROR_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "engine/error_budget.h"
#include "engine/memory/dims.h"

namespace tilewire::tuning {

// An output of one example, row-major.
struct OutputFloats {
  Dims dims;
  std::vector<float> elements;
};

// Outputs of the same examples, whose indices `examples` are.
struct OutputPairs {
  absl::Span<const int64_t> examples;
  absl::Span<const OutputFloats> exact, tuned;
};

// Answers that are not what they were: of top1_changed those that changed, and none is better; of
// accuracy_drop those that only the exact model has right, and those that only the other one has.
struct AnswerCounts {
  int64_t worse = 0, better = 0;
};

class OutputError {
 public:
  // `exact` is of finite numbers. A NaN in `other`, or other dims, is as far as can be. `label` is
  // an index along dimension 1; -1: not known.
  void Add(const OutputFloats& exact, const OutputFloats& other, int64_t label = -1);

  // accuracy_drop: all examples that were added had labels and are one place each.
  MeasuredError Of(ErrorMeasure measure) const;
  AnswerCounts CountsOf(ErrorMeasure measure) const;

 private:
  void CountChanged(const OutputFloats& exact, absl::Span<const float> other, int64_t label);

  double squares_ = 0, differences_ = 0;  // sums of squares
  double lowest_ = 0, highest_ = 0;       // of the exact ones
  int64_t elements_ = 0, examples_ = 0;
  int64_t places_ = 0, changed_ = 0;
  AnswerCounts right_;
};

// The error of all that `pairs` has tuned outputs of, from the front; `labels` are of all examples
// of a tuning, and may be empty.
OutputError ErrorOf(const OutputPairs& pairs, absl::Span<const int64_t> labels);

// The probability that `other` examples keep a limit on the share of worse answers, less that of
// better ones. `stretched` counts both among `examples` where each error is kStretch times what it
// is, which tells more than the answers themselves do where few change; each number is taken to
// have a Poisson distribution whose mean is its share over kStretch. In [0, 1].
constexpr float kStretch = 2;
double ProbabilityToKeep(AnswerCounts stretched, int64_t examples, int64_t other, double limit);
// y + kStretch (z - y). The dims of both are the same.
OutputFloats Stretched(const OutputFloats& y, const OutputFloats& z);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_OUTPUT_ERROR_H_
