// SPDX-License-Identifier: Apache-2.0
//
// Choices of a random generator: chances in per cent, and one of a few values.
#ifndef TESTS_SUPPORT_RANDOM_CHOICE_H_
#define TESTS_SUPPORT_RANDOM_CHOICE_H_

#include <cstdint>
#include <initializer_list>
#include <vector>

#include "tests/support/random_tensor.h"

namespace tilewire::testing {

inline bool Chance(Random& random, int percent) { return random.Integer(1, 100) <= percent; }

template <typename T>
T Pick(Random& random, std::initializer_list<T> values) {
  return values.begin()[random.Integer(0, static_cast<int64_t>(values.size()) - 1)];
}

template <typename T>
const T& PickOf(Random& random, const std::vector<T>& values) {
  return values[random.Integer(0, static_cast<int64_t>(values.size()) - 1)];
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_RANDOM_CHOICE_H_
