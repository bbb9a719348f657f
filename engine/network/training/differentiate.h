// SPDX-License-Identifier: Apache-2.0
//
// From a network to its gradients: appends, after the operations of a network, those that compute
// the derivative of a number (the loss) by values of it. By the chain rule, from the last operation
// to the first: an operation's row (gradients.h) appends the gradients of its sources, given that
// of its result. The contributions to one value become one Sum, in the order in which they were
// appended; what backward reads of forward is simply a use of a value.
//
//   Network network = ...;  // forward, with the operation that computes the loss and `seed`, its
//                           // gradient by the logits
//   ABSL_ASSIGN_OR_RETURN(std::vector<ValueId> gradients,
//                         Differentiate({{logits, seed}}, parameters, &network));
//
// Thread-compatible.
#ifndef ENGINE_NETWORK_TRAINING_DIFFERENTIATE_H_
#define ENGINE_NETWORK_TRAINING_DIFFERENTIATE_H_

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/network/network.h"

namespace tilewire::network {

// Where the gradient comes from: `gradient` has the dims of `value`.
struct GradientSeed {
  ValueId value = kNoValue;
  ValueId gradient = kNoValue;
};

// Returns the gradients by the values `by`, in their order; kNoValue for one that no seed depends
// on. Only values on a way from one of `by` to a seed get gradients. The network has had no pass
// that takes parameters or activations into other operations, except those of passes.h for
// training.
//   kUnimplemented  operations on such a way that have no gradient: the name and the reason of each
absl::StatusOr<std::vector<ValueId>> Differentiate(absl::Span<const GradientSeed> seeds,
                                                   absl::Span<const ValueId> by, Network* network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_DIFFERENTIATE_H_
