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

class OutputError {
 public:
  // `exact` is of finite numbers. A NaN in `other`, or other dims, is as far as can be.
  void Add(const OutputFloats& exact, const OutputFloats& other);

  MeasuredError Of(ErrorMeasure measure) const;

 private:
  void CountChanged(const OutputFloats& exact, absl::Span<const float> other);

  double squares_ = 0, differences_ = 0;  // sums of squares
  double lowest_ = 0, highest_ = 0;       // of the exact ones
  int64_t elements_ = 0, examples_ = 0;
  int64_t places_ = 0, changed_ = 0;
};

// The probability that `other` examples keep a limit on the share of changed answers. `stretched`
// of `examples` answers change where each error is kStretch times what it is, which tells more than
// the number of changes does where they are few; changes are taken to have a Poisson distribution
// whose mean is that share over kStretch. In [0, 1].
constexpr float kStretch = 2;
double ProbabilityToKeep(int64_t stretched, int64_t examples, int64_t other, double limit);
// y + kStretch (z - y). The dims of both are the same.
OutputFloats Stretched(const OutputFloats& y, const OutputFloats& z);

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_OUTPUT_ERROR_H_
