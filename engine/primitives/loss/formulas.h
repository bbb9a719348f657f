// SPDX-License-Identifier: Apache-2.0
//
// The losses of one element x with the target t, and their derivatives by x. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_LOSS_FORMULAS_H_
#define ENGINE_PRIMITIVES_LOSS_FORMULAS_H_

#include <algorithm>
#include <cmath>

#include "engine/primitives/loss/loss.h"

namespace tilewire::loss {

template <typename T>
struct Term {
  T loss, gradient;
};

// e^-|x| cannot overflow, whatever x.
template <typename T>
Term<T> BinaryCrossEntropy(T x, T t) {
  const T small = std::exp(-std::abs(x));
  const T logistic = (x >= 0 ? T{1} : small) / (1 + small);
  return {std::max(x, T{0}) - x * t + std::log1p(small), logistic - t};
}

template <typename T>
Term<T> SquaredError(T x, T t) {
  const T d = x - t;
  return {d * d, 2 * d};
}

template <typename T>
Term<T> Huber(T x, T t, T delta) {
  const T d = x - t, size = std::abs(d);
  if (size <= delta) return {d * d / 2, d};
  return {delta * (size - delta / 2), d < 0 ? -delta : delta};
}

// Calls use(term), where term(x, t) is the formula of an algorithm that has one per element, in T.
template <typename T, typename Use>
void VisitTerm(const LossDesc& desc, const Use& use) {
  if (desc.algorithm == LossFunction::kBinaryCrossEntropy) {
    use([](T x, T t) { return BinaryCrossEntropy<T>(x, t); });
  } else if (desc.algorithm == LossFunction::kHuber) {
    use([delta = static_cast<T>(desc.delta)](T x, T t) { return Huber<T>(x, t, delta); });
  } else {
    use([](T x, T t) { return SquaredError<T>(x, t); });
  }
}

}  // namespace tilewire::loss

#endif  // ENGINE_PRIMITIVES_LOSS_FORMULAS_H_
