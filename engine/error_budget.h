// SPDX-License-Identifier: Apache-2.0
//
// How far the outputs of a changed model may be from those of the exact one. y are the elements of
// an output of the exact model, z those of the changed one, over all examples together:
//
//   top1_changed   share of the places at which the largest of y and of z, along dimension 1, have
//                  other indices; an example without further dimensions is one place. Between 0
//                  and 1
//   accuracy_drop  with a label for each example, which is one place: the share of the examples
//                  whose label is the index of the largest of y, minus the same of z; between -1
//                  and 1
//   l2             |z - y| / |y|, Euclidean; 0 and up
//   psnr           10 log10((max y - min y)^2 / mean((z - y)^2)) in dB; the larger the better
//
// Value types. Sources of the intervals: E. B. Wilson, Probable inference, 1927; of accuracy_drop
// A. Agresti and Y. Min, Statistics in Medicine 24, 2005.
#ifndef ENGINE_ERROR_BUDGET_H_
#define ENGINE_ERROR_BUDGET_H_

#include <cstdint>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace tilewire {

enum class ErrorMeasure : uint8_t { kTop1Changed, kAccuracyDrop, kL2, kPsnr };

// "top1_changed", "accuracy_drop", "l2", "psnr".
absl::string_view NameOf(ErrorMeasure measure);
// Whether it counts answers, in shares of the examples.
bool IsOfAnswers(ErrorMeasure measure);
// A value of the measure as people read it: "0.28 %", "3.1e-03", "41.2 dB".
std::string ErrorText(ErrorMeasure measure, double value);

class ErrorBudget {
 public:
  // MEASURE<=NUMBER, of psnr MEASURE>=NUMBER; of top1_changed and accuracy_drop NUMBER may be a
  // percentage. After the measure, "(NAME)" names an output; without it, the first one is meant.
  //   kInvalidArgument  another form, a measure that there is not, a number out of range; each with
  //                     the value and what is allowed
  static absl::StatusOr<ErrorBudget> Parse(absl::string_view text);

  ErrorMeasure measure() const { return measure_; }
  double limit() const { return limit_; }
  const std::string& output() const { return output_; }  // empty: the first
  bool Allows(double value) const;
  // Whether `value` is farther from the exact model than `other`.
  bool IsWorse(double value, double other) const;
  // A budget of which the share 1 - `part` is left as a margin; of psnr, so many dB more as that
  // share of the error is. `part` is in (0, 1].
  ErrorBudget Part(double part) const;
  std::string ToString() const;

 private:
  ErrorBudget(ErrorMeasure measure, double limit, std::string output)
      : measure_(measure), limit_(limit), output_(std::move(output)) {}

  ErrorMeasure measure_;
  double limit_;
  std::string output_;
};

// The values between which a share lies with a confidence of 95 %.
struct ShareInterval {
  double low = 0, high = 1;
};

// Wilson's interval for `counted` of `total`, which is at least 1.
ShareInterval WilsonInterval(int64_t counted, int64_t total);
// The interval of (worse - better) / total, where so many of `total` answers, at least 1, became
// worse and better.
ShareInterval DropInterval(int64_t worse, int64_t better, int64_t total);

struct MeasuredError {
  double value = 0;
  int64_t examples = 0;
  // Only of answers where an example is one place: others are not independent.
  std::optional<ShareInterval> interval;
};

// "0.56 % of 180 examples, between 0.10 % and 3.08 %": with the interval, if there is one.
std::string MeasuredText(ErrorMeasure measure, const MeasuredError& error);

}  // namespace tilewire

#endif  // ENGINE_ERROR_BUDGET_H_
