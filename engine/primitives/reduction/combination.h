// SPDX-License-Identifier: Apache-2.0
//
// Combines the elements of a reduction one after the other, in double; shared by the plain loops of
// reduction. Pure functions; thread-safe.
#ifndef ENGINE_PRIMITIVES_REDUCTION_COMBINATION_H_
#define ENGINE_PRIMITIVES_REDUCTION_COMBINATION_H_

#include <cmath>

#include "engine/primitives/reduction/implementations.h"

namespace tilewire::reduction {

// The result so far with one more element.
inline double Combine(const ReductionDesc& desc, double result, double x) {
  switch (desc.algorithm) {
    case ReductionAlgorithm::kMax:
      return std::isnan(result) || result > x ? result : x;
    case ReductionAlgorithm::kMin:
      return std::isnan(result) || result < x ? result : x;
    case ReductionAlgorithm::kSum:
    case ReductionAlgorithm::kMean:
      return result + x;
    case ReductionAlgorithm::kMul:
      return result * x;
    default:
      // Powers of 1 and 2 are computed exactly, without pow().
      if (desc.p == 1) return result + std::abs(x);
      return result + (desc.p == 2 ? x * x : std::pow(std::abs(x), desc.p));
  }
}

// The result of all elements.
inline double FinishCombination(const ReductionDesc& desc, double result) {
  if (desc.algorithm == ReductionAlgorithm::kMean) {
    return result / static_cast<double>(ReducedCount(desc));
  }
  if (!IsNorm(desc.algorithm)) return result;
  result = AddsEps(desc.algorithm) ? result + desc.eps : result < desc.eps ? desc.eps : result;
  return TakesRoot(desc.algorithm) ? std::pow(result, 1.0 / desc.p) : result;
}

}  // namespace tilewire::reduction

#endif  // ENGINE_PRIMITIVES_REDUCTION_COMBINATION_H_
