// SPDX-License-Identifier: Apache-2.0
//
// From nodes to operations. Visits every node once, in topological order, with the concrete dims of
// its inputs and their values where these are known. Shape arithmetic folds to constants;
// everything else appends operations to a Network.
#ifndef ENGINE_ONNX_SPECIALIZATION_H_
#define ENGINE_ONNX_SPECIALIZATION_H_

#include <functional>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "engine/network/constant.h"
#include "engine/network/network.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// Folds every node that depends on no input. Called once per model; BuildNetwork() starts from the
// result. Initializers and constants that `except` marks, by TensorId, stay unknown.
absl::StatusOr<std::vector<Operand>> FoldConstants(const ModelGraph& graph,
                                                   const std::vector<bool>& except = {});

// Builds the network for the dims of these inputs, with one operation or a few per node, before any
// pass. `known` holds the elements of the inputs that decide shapes (deciding_inputs.h), null for
// all others; empty if there are none. Nodes that depend on one that is refused are left out, the
// others are visited, so that all that is not supported is in one message (problems.h).
//   what `interrupted` returned, which is called between nodes
//   kInvalidArgument  a shape that some node cannot take, dims of another number of inputs, or
//                     below 0
//   kUnimplemented    uses of operators that are not supported
//   kInternal         an operation that breaks its contract (network_check.h)
absl::StatusOr<network::Network> BuildNetwork(
    const ModelGraph& graph, std::vector<Operand> folded, absl::Span<const Dims> input_dims,
    absl::Span<const ConstantPtr> known = {},
    const std::function<absl::Status()>& interrupted = {});

// The same for training: the tensors of the file that `learning` (trainable.h) marks are parameters
// of the network. `folded` is of FoldConstants() of this model.
absl::StatusOr<network::Network> BuildForTraining(const ModelGraph& graph,
                                                  const std::vector<Operand>& folded,
                                                  const std::vector<bool>& learning,
                                                  absl::Span<const Dims> input_dims,
                                                  const TrainingPurpose& purpose);

// The two ends of a network. The inputs become values of it; those whose elements are known are
// constants besides.
absl::Status AddInputs(const ModelGraph& graph, absl::Span<const Dims> dims,
                       absl::Span<const ConstantPtr> known, std::vector<Operand>* tensors,
                       network::Network* network);
// An output that is known already is a literal. Values without dimensions become [1].
absl::Status SetOutputs(const ModelGraph& graph, const std::vector<Operand>& tensors,
                        network::Network* network);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_SPECIALIZATION_H_
