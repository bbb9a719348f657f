// SPDX-License-Identifier: Apache-2.0
//
// Gradients for the tests of primitives that run backward: from a formula of forward in double, by
// central differences, so that a derivative is not checked against itself.
#ifndef TESTS_ENGINE_PRIMITIVES_GRADIENTS_H_
#define TESTS_ENGINE_PRIMITIVES_GRADIENTS_H_

#include <functional>
#include <vector>

namespace tilewire::testing {

using Doubles = std::vector<double>;

inline Doubles ToDoubles(const std::vector<float>& values) {
  return Doubles(values.begin(), values.end());
}

// The gradient by x of the sum of dy[i] f(x)[i]. `step` is for elements of about 1.
Doubles CentralDifferences(const Doubles& x, const std::vector<float>& dy,
                           const std::function<Doubles(const Doubles&)>& f, double step = 1e-5);

// A reference adds up in double and rounds once; other rows add up in f32.
constexpr double GradientTolerance(bool is_reference) { return is_reference ? 2e-7 : 1e-5; }

// Each element is within `tolerance` of the expected one, relative to 1 and to its size.
void ExpectGradient(const std::vector<float>& gradient, const Doubles& expected,
                    double tolerance = 1e-5);

}  // namespace tilewire::testing

#endif  // TESTS_ENGINE_PRIMITIVES_GRADIENTS_H_
