// SPDX-License-Identifier: Apache-2.0
//
// Gradients that are put together in fewer operations than the rows of differentiation append.
// Operations that nothing reads any more stay where they are. Pure.
#ifndef ENGINE_NETWORK_TRAINING_MERGED_GRADIENTS_H_
#define ENGINE_NETWORK_TRAINING_MERGED_GRADIENTS_H_

#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "engine/network/network.h"

namespace tilewire::network {

// The gradient of a transposed matrix, as weights of a Gemm often are, would be computed and then
// transposed: it is the same product with its sides exchanged. Rewrites such pairs among the
// operations from `first` on; `kept` are values that are read by more than operations.
void ExchangeTransposedGradients(size_t first, const std::vector<ValueId>& kept, Network* network);

// The gradient of a maximum over windows, followed by that of the relu before it, passes dy on
// where the largest element is positive: the relu's may come first, of the maxima, which are fewer.
// Rewrites such pairs among the operations from `first` on; `kept` as above.
void ExchangePooledRelus(size_t first, const std::vector<ValueId>& kept, Network* network);

// Tensors that lie one after the other along an axis.
struct Pieces {
  int axis = 0;
  std::vector<ValueId> values;
};
// The parts of a value that was split: each of `gradients` is one of them with zeros around it, and
// together they fill the value. nullopt where it is otherwise. `first` is where the operations that
// compute gradients begin.
std::optional<Pieces> PiecesOf(absl::Span<const ValueId> gradients, size_t first,
                               const Network& network);

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_TRAINING_MERGED_GRADIENTS_H_
