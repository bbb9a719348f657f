// SPDX-License-Identifier: Apache-2.0
//
// The answers of a tuned model beside those of the exact one. Value types.
#ifndef ENGINE_TUNED_ANSWERS_H_
#define ENGINE_TUNED_ANSWERS_H_

#include <cstdint>

#include "engine/error_budget.h"

namespace tilewire {

// An example for which the tuned model has another class than the exact one.
struct ChangedAnswer {
  int64_t example = 0;  // its index
  int64_t exact_class = 0, tuned_class = 0;
  // They belong to these classes: the output where its elements are probabilities, whose sum is 1,
  // else its softmax.
  double exact_probability = 0, tuned_probability = 0;
  int64_t label = -1;  // -1: not known
};

// How many examples the models are right for, and within which shares of all that may lie.
struct Accuracy {
  int64_t examples = 0, exact_right = 0, tuned_right = 0;
  ShareInterval exact_interval, tuned_interval;
};

}  // namespace tilewire

#endif  // ENGINE_TUNED_ANSWERS_H_
