// SPDX-License-Identifier: Apache-2.0
//
// The peer at its best: one oneDNN f32 convolution with bias and relu in formats of its own choice,
// data already in them, scratchpad brought along, one thread. Thread-compatible.
#ifndef TESTS_BENCH_ONEDNN_CONVOLUTION_H_
#define TESTS_BENCH_ONEDNN_CONVOLUTION_H_

#include <memory>

#include "tests/bench/shape_list.h"

namespace tilewire::bench {

class OneDnnConvolution {
 public:
  explicit OneDnnConvolution(const Shape& shape);
  ~OneDnnConvolution();
  void Run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_ONEDNN_CONVOLUTION_H_
