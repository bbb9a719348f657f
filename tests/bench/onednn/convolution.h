// SPDX-License-Identifier: Apache-2.0
//
// The peer at its best: one oneDNN convolution with bias and relu in formats of its own choice,
// data already in them, scratchpad brought along, one thread. Thread-compatible.
#ifndef TESTS_BENCH_ONEDNN_CONVOLUTION_H_
#define TESTS_BENCH_ONEDNN_CONVOLUTION_H_

#include <memory>

#include "tests/bench/shape_list.h"

namespace tilewire::bench {

class OneDnnConvolution {
 public:
  OneDnnConvolution(const Shape& shape, Arithmetic arithmetic);
  ~OneDnnConvolution();
  void Run();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// Seconds of the peer's first execution of a convolution: created (its cache of primitives is off),
// weights packed from oihw, run once. Memory is brought along.
struct FirstExecution {
  double create, pack, run;
  double Total() const { return create + pack + run; }
};
FirstExecution MeasureOneDnnFirstExecution(const Shape& shape);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_ONEDNN_CONVOLUTION_H_
