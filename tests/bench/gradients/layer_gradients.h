// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layers other than convolutions for families_bench, as in layers.txt: of maxima,
// averages, batch and layer normalization, LRN, relu and prelu, of sums and products of two
// tensors, and of src and of weights of inner products. What forward saves for them, statistics and
// places of maxima, comes from a run of forward. And that forward itself, which the kinds
// training_max, training_batch_normalization and training_layer_normalization are.
//
// Prelu, sums and products have a second tensor, which the images share: `per` is 0 for one number,
// 1 for one per channel, 2 for one per pixel, 3 for one per element. `layout` is one of Layout, of
// ours alone. oneDNN has no gradients of sums and products: their peer is our reference.
#ifndef TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_
#define TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_

#include <memory>
#include <string>

#include "tests/bench/operation.h"

namespace tilewire::bench {

inline bool IsForwardForTraining(const Operation& operation) {
  return operation.kind.starts_with("training_");
}
inline bool IsOfTraining(const Operation& operation) {
  return operation.kind.starts_with("gradient_") || IsForwardForTraining(operation);
}
// The kind without gradient_ or training_.
inline std::string LayerOf(const Operation& operation) {
  return operation.kind.substr(operation.kind.find('_') + 1);
}

enum Layout : int64_t { kBlocked = 0, kNchw = 1, kNhwc = 2 };
inline bool IsPerChannel(const Operation& operation) { return (operation.at("per") & 1) != 0; }
inline bool IsPerPixel(const Operation& operation) { return (operation.at("per") & 2) != 0; }
inline bool HasNoPeer(const Operation& operation) {
  return operation.kind == "gradient_add" || operation.kind == "gradient_multiply";
}

// As MakeOurs() and MakeOneDnn().
std::unique_ptr<RunnableOperation> MakeOurGradient(const Operation& operation, cpu::Isa max_isa,
                                                   bool reference = false);
std::unique_ptr<RunnableOperation> MakeOneDnnGradient(const Operation& operation);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_GRADIENTS_LAYER_GRADIENTS_H_
