// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/primitives/gradients.h"

#include <cmath>
#include <cstddef>

#include "gtest/gtest.h"

namespace tilewire::testing {
namespace {

double WeightedSum(const Doubles& values, const std::vector<float>& weights) {
  EXPECT_EQ(values.size(), weights.size());
  double sum = 0;
  for (size_t i = 0; i < values.size(); ++i) sum += weights[i] * values[i];
  return sum;
}

}  // namespace

Doubles CentralDifferences(const Doubles& x, const std::vector<float>& dy,
                           const std::function<Doubles(const Doubles&)>& f, double step) {
  Doubles gradient, moved = x;
  for (size_t i = 0; i < x.size(); ++i) {
    moved[i] = x[i] + step;
    const double after = WeightedSum(f(moved), dy);
    moved[i] = x[i] - step;
    const double before = WeightedSum(f(moved), dy);
    moved[i] = x[i];
    gradient.push_back((after - before) / (2 * step));
  }
  return gradient;
}

void ExpectGradient(const std::vector<float>& gradient, const Doubles& expected, double tolerance) {
  ASSERT_EQ(gradient.size(), expected.size());
  for (size_t i = 0; i < gradient.size(); ++i) {
    EXPECT_NEAR(gradient[i], expected[i], tolerance * (1 + std::abs(expected[i])))
        << "element " << i;
  }
}

}  // namespace tilewire::testing
