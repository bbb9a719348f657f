// SPDX-License-Identifier: Apache-2.0
//
// Reductions of whole dimensions in a network (network.h).
#ifndef ENGINE_NETWORK_REDUCTION_H_
#define ENGINE_NETWORK_REDUCTION_H_

namespace tilewire::network {

// Reduces the dimensions that are 1 in dst and more in src; the ranks are equal.
struct Reduce {
  enum class Function {
    kSum,
    kMean,
    kMax,
    kMin,
    kProduct,
    kSumOfAbs,
    kSumOfSquares
  } function = Function::kSum;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_REDUCTION_H_
