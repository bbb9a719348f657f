// SPDX-License-Identifier: Apache-2.0
//
// A model's inputs and outputs as requests see them. What a file leaves open stays open; the shapes
// of outputs are found by building the network for made-up input shapes.
#ifndef ENGINE_ONNX_SIGNATURE_H_
#define ENGINE_ONNX_SIGNATURE_H_

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/memory/tensor_spec.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

struct Signature {
  std::vector<TensorSpec> inputs, outputs;
  bool has_cuts = false;  // sizes are known only once something is computed (cut.h)
  // Not OK where none of the made-up shapes fits: why the first did not.
  absl::Status unfit;
};

// `folded` is what FoldConstants() gave. Where shapes are open beyond the batch and none of the
// made-up ones fits the model, the outputs are as the file declares them: whether a shape fits is
// then known when a request brings it. An open batch that fits for 1 only is a batch of 1. Where
// elements of inputs decide shapes, so are they. Where sizes are known only once something is
// computed, the dims that they change are open.
//   kInvalidArgument  shapes that contradict each other, whatever is left open
//   kUnimplemented    a use of an operator that is not supported
absl::StatusOr<Signature> InferSignature(const ModelGraph& graph,
                                         const std::vector<Operand>& folded);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_SIGNATURE_H_
