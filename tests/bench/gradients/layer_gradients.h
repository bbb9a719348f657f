// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layers other than convolutions for families_bench, as in layers.txt: of maxima,
// averages, batch normalization, LRN and relu, and of src and of weights of inner products. What
// forward saves for them, statistics and places of maxima, comes from a run of forward.
#ifndef TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_
#define TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_

#include <memory>

#include "tests/bench/operation.h"

namespace tilewire::bench {

inline bool IsGradient(const Operation& operation) {
  return operation.kind.starts_with("gradient_");
}

// As MakeOurs() and MakeOneDnn().
std::unique_ptr<RunnableOperation> MakeOurGradient(const Operation& operation, cpu::Isa max_isa);
std::unique_ptr<RunnableOperation> MakeOneDnnGradient(const Operation& operation);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_
