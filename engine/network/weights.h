// SPDX-License-Identifier: Apache-2.0
//
// Weights of operations of a network (network.h): numbers that are known when it is built.
#ifndef ENGINE_NETWORK_WEIGHTS_H_
#define ENGINE_NETWORK_WEIGHTS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/memory/dims.h"
#include "engine/network/constant.h"

namespace tilewire::network {

// Weights as they are in the file, row-major, and the factors that were folded into them:
//   effective[oc, ...] = element[oc, ...] * (scale.empty() ? 1 : scale[oc])
// The elements are `data`, or loaded from `stored`, or `s8` says what they are. `key` names them:
// it is the same for every specialization of a model, so that packed forms are shared; elements or
// factors that were computed for one specialization are its `own`, and share nothing.
struct Weights {
  std::string key;
  Dims dims;                     // convolution [O, I/groups, k...]; inner product [O, I]
  absl::Span<const float> data;  // borrowed from `owner`; empty where the elements are loaded
  std::shared_ptr<const void> owner;
  std::shared_ptr<const StoredNumbers> stored;
  // Integers in [-128, 127]: the elements are these less `zero_point`, which is in that range, too.
  std::shared_ptr<const StoredNumbers> s8;
  int32_t zero_point = 0;
  std::vector<float> scale;  // one per output channel (batch-norm folding), or empty
  bool transposed = false;   // one pixel per tap: data is [I, O] (MatMul, Gemm transB=0)
  bool own = false;
};

// Returns the elements, of either type, as floats. Errors are those of StoredNumbers.
absl::StatusOr<HeldFloats> LoadElements(const Weights& weights);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_WEIGHTS_H_
