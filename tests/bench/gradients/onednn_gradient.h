// SPDX-License-Identifier: Apache-2.0
//
// The peer at its best: a gradient of one f32 oneDNN convolution in formats of its own choice, data
// already in them, scratchpad brought along, one thread. Thread-compatible.
#ifndef TESTS_BENCH_GRADIENTS_ONEDNN_GRADIENT_H_
#define TESTS_BENCH_GRADIENTS_ONEDNN_GRADIENT_H_

#include <memory>

#include "tests/bench/shape_list.h"

namespace tilewire::bench {

enum class GradientKind { kSrc, kWeights };  // of weights and bias

class OneDnnGradient {
 public:
  OneDnnGradient(const Shape& shape, GradientKind kind);
  ~OneDnnGradient();
  void Run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_GRADIENTS_ONEDNN_GRADIENT_H_
