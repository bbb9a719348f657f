// SPDX-License-Identifier: Apache-2.0
//
// The operation that says how far results are from targets. Shapes are in logical order
// [N, C, spatial...].
#ifndef ENGINE_NETWORK_LOSS_H_
#define ENGINE_NETWORK_LOSS_H_

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/functions/loss_function.h"

namespace tilewire::network {

// A number, dst [1], by the formulas of engine/primitives/loss/loss.h. Sources are x, of real
// numbers, and targets: real numbers of its dims, or, of a softmax cross entropy, labels [N, d...]
// of s32 or s64 for x [N, C, d...]. If `gives_gradient`, the derivative by x is a further result.
struct Loss {
  using Function = functions::LossFunction;
  Function function = Function::kSoftmaxCrossEntropy;
  bool gives_gradient = false;
  bool mean = true;
  double factor = 1;
  double delta = 1;  // of kHuber
  // The others are of kSoftmaxCrossEntropy, class weights of kBinaryCrossEntropy too.
  double label_smoothing = 0;
  std::optional<int64_t> ignore_index;
  std::vector<float> class_weights;  // [C], or empty: 1 each
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_LOSS_H_
