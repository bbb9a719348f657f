// SPDX-License-Identifier: Apache-2.0
//
// Models with sizes that are known only once something has been computed: how many boxes
// NonMaxSuppression keeps, the count that a TopK reads, the branch that an If takes. Such a model
// is planned in stages. The visit to its nodes leaves out, in every stage,
//   * late nodes: the size of the result depends on elements (NonZero), or the node runs a graph as
//     often as elements say (Loop). They are computed from elements, between two stages;
//   * nodes that wait for elements of few numbers: a count, a shape, a condition. These numbers
//     are constants of the next stage;
//   * all nodes that depend on these. All others are in the stage, wherever the file has them.
// The stage's network gives what the nodes after it read. The next stage takes that, and what was
// computed in between, as inputs of the sizes that came out, and leaves out what has to wait again.
// A stage depends on the sizes, and on elements that give sizes, alone, so that it is planned once
// for all requests that agree in them. The graph of a Loop is a model of its own, with its carried
// values and what it reads of the graphs around it as inputs.
//
// Immutable once built; thread-safe.
#ifndef ENGINE_ONNX_STAGES_CUT_H_
#define ENGINE_ONNX_STAGES_CUT_H_

#include <functional>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/node_context.h"

namespace tilewire::reader {

// A tensor between stages: as a network holds it, row-major, in `type`.
struct StagedTensor {
  TensorId id = kNoTensor;
  DataType type = DataType::kF32;
  bool is_integer = false;  // integers or truth values, whatever type holds them
  Dims dims;
};

// The nodes of a stage's graph, and what it is to give: the model, or the body of a Loop.
struct StagedGraph {
  const std::vector<Node>* nodes = nullptr;
  std::vector<TensorId> outputs;
  bool is_model = false;
};

// Where a stage ends.
struct Cut {
  StagedGraph graph;
  std::vector<Operand> tensors;      // by TensorId: all constants that are known here
  std::vector<StagedTensor> inputs;  // of the stage's network; none of a model's first stage
  // The outputs of the network, in its order. The last stage of a model gives the model's outputs
  // in the types of its signature instead.
  std::vector<StagedTensor> outputs;
  std::vector<StagedTensor> kept;  // given by this stage or those before it, and read after it
  std::vector<const Node*> late;   // to be computed after the stage
  std::vector<TensorId> known;     // of `kept`: the next stage needs their elements
  bool is_last() const { return late.empty() && known.empty(); }
  // The bytes that it keeps in memory beyond the model.
  int64_t HeldBytes() const;
};

struct Stage {
  network::Network network;
  std::shared_ptr<const Cut> cut;  // null: the network is the whole model
};

// The beginning of a stage.
struct StageStart {
  StagedGraph graph;
  std::vector<Operand> tensors;      // constants
  std::vector<StagedTensor> inputs;  // those that have no use are left out
};

// Called between nodes; a status that is not OK ends the work with it. May be empty.
using Interrupted = std::function<absl::Status()>;

// The first stage of a model for these input dims.
//   kInvalidArgument    a shape that some node cannot take
//   kResourceExhausted  a wait for too many elements
//   kUnimplemented      uses of operators that are not supported, all in one message
//   and what `interrupted` returned
absl::StatusOr<Stage> BuildFirstStage(const ModelGraph& graph, std::vector<Operand> folded,
                                      absl::Span<const Dims> input_dims,
                                      const Interrupted& interrupted = {});
// Any other. Errors are the same.
absl::StatusOr<Stage> BuildStage(const ModelGraph& graph, StageStart start,
                                 const Interrupted& interrupted = {});

// The start of the stage after `cut`, when its late nodes gave `computed`. `known` are the
// elements of cut.known, in the same order.
StageStart StartAfter(const Cut& cut, absl::Span<const StagedTensor> computed,
                      absl::Span<const ConstantPtr> known);

// The tensors that a node, or graphs in it, read of `cut` and that are not constants, each once.
std::vector<StagedTensor> ReadBy(const Node& node, const Cut& cut);

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_STAGES_CUT_H_
