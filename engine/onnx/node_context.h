// SPDX-License-Identifier: Apache-2.0
//
// The node that is being visited, as the operators of ops/ see it: its inputs and attributes, and
// the network that its operations are appended to.
#ifndef ENGINE_ONNX_NODE_CONTEXT_H_
#define ENGINE_ONNX_NODE_CONTEXT_H_

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "engine/network/constant.h"
#include "engine/network/network.h"
#include "engine/onnx/file/model_graph.h"
#include "engine/onnx/file/node.h"
#include "engine/onnx/operand.h"
#include "engine/onnx/training_purpose.h"

namespace tilewire::reader {

// The names that all operators use.
using network::Elementwise;
using network::EltwiseAlgorithm;
using network::Function;

// The most visits of nodes in bodies: loops are unrolled, and a file can nest them.
inline constexpr int64_t kMostVisits = int64_t{1} << 16;

// How nodes are visited, where that differs: several times, or for training.
struct Repetition {
  std::string suffix;                                              // of the names it gives
  std::shared_ptr<int64_t> visits = std::make_shared<int64_t>(0);  // of nodes in bodies, so far
  // Called between nodes; a status that is not OK ends the visit with it. May be null or empty.
  const std::function<absl::Status()>* interrupted = nullptr;
  const TrainingPurpose* training = nullptr;  // null: for inference
};

// Builds the operations of nodes: VisitNodes() of node_visit.h, which knows all operators, while
// they know only this header.
using NodeVisitor = absl::Status (*)(const std::vector<Node>& nodes, const ModelGraph& graph,
                                     std::vector<Operand>* tensors, network::Network* network,
                                     const Repetition& repetition);

// Whether a tensor may have these dims: its bytes overflow in no later arithmetic. Dimensions of 0
// count as 1, so that the product of any of them fits, too.
bool FitsInMemory(Dims dims);

// kUnimplemented: visits to the graphs in the node are more than kMostVisits.
absl::Status LoopsTooLong(const Node& node);

// The node being visited. Operators read input(), append operations with Emit() and end with
// SetOutput(). Thread-compatible.
class NodeContext {
 public:
  NodeContext(const Node& node, const ModelGraph& graph, std::vector<Operand>* tensors,
              network::Network* network, NodeVisitor visit_nodes, Repetition repetition = {})
      : node(node),
        graph_(graph),
        tensors_(*tensors),
        network_(network),
        visit_nodes_(visit_nodes),
        repetition_(std::move(repetition)),
        first_own_value_(static_cast<ValueId>(network->values.size())) {}

  const Node& node;

  int input_count() const { return static_cast<int>(node.inputs.size()); }
  bool Has(int i) const { return node.HasInput(i); }
  const Operand& input(int i) const { return tensors_[node.inputs[i]]; }
  bool AllConstant() const;
  // The input as a constant of f32. kUnimplemented: it is computed at run time. kInvalidArgument:
  // it is of integers.
  absl::StatusOr<ConstantPtr> Floats(int i) const;
  // The same, but the floats may still be in the file: for operators that only pass them on.
  absl::StatusOr<ConstantPtr> FloatsInPlace(int i) const;
  // As Floats(), for integers.
  absl::StatusOr<ConstantPtr> Ints(int i) const;
  // Whether the input holds integers or truth values.
  bool IsInteger(int i) const { return tilewire::reader::IsInteger(input(i)); }
  // The input as a value of the network in f32, to which one of f64 is rounded; a floating-point
  // constant as a Literal. kUnimplemented: it holds integers.
  absl::StatusOr<ValueId> Runtime(int i) { return AsValue(input(i)); }
  absl::StatusOr<ValueId> AsValue(const Operand& operand);
  // The same for operators that only move or compare elements: a value of 8-bit integers stays one,
  // and known integers become the same numbers in f32.
  absl::StatusOr<ValueId> RuntimeOfAnyType(int i) { return OfAnyType(input(i)); }
  absl::StatusOr<ValueId> OfAnyType(const Operand& operand);
  // As AsValue(), but integers become the same numbers in f32. kUnimplemented: they are of a type
  // that f32 does not hold exactly.
  absl::StatusOr<ValueId> Numbers(const Operand& operand);
  // The operand as a value of the network of `type`, of numbers: one of another type is converted,
  // a constant becomes a Literal.
  //   kInvalidArgument  a constant of integers with a floating-point element, or with one that is
  //                     not in the type's range
  absl::StatusOr<ValueId> InType(const Operand& operand, DataType type);
  // The types that input and output i have in the model, whatever holds them.
  auto ElementType(int i) const { return graph_.element_types[node.inputs[i]]; }
  auto ElementTypeOfOutput(int i) const { return graph_.element_types[node.outputs[i]]; }
  // The type of the value that the operand is; kF32 for a constant.
  DataType TypeOf(const Operand& operand) const {
    return operand.value == kNoValue ? DataType::kF32 : value(operand.value).type;
  }

  const network::Value& value(ValueId id) const { return network_->values[id]; }
  // The name of the first output, or of output i, in the file, and which repetition of it this is;
  // unique.
  std::string output_name() const {
    return absl::StrCat(graph_.tensor_names[node.FirstOutput()], repetition_.suffix);
  }
  std::string output_name(int i) const {
    return absl::StrCat(graph_.tensor_names[node.outputs[i]], repetition_.suffix);
  }
  // Whether a node reads output i, or it is an output of the graph.
  bool IsRead(int i) const { return node.HasOutput(i) && graph_.is_read[node.outputs[i]]; }
  // Whether nodes of this operator, beside this one, are all that reads output 0.
  bool IsReadOnlyBy(absl::string_view op) const;
  // A tensor that the node names otherwise (Node::captures), and its name for messages.
  const Operand& tensor(TensorId id) const { return tensors_[id]; }
  std::string tensor_name(TensorId id) const { return graph_.tensor_names[id].substr(0, 200); }
  // Output i, once it is set.
  const Operand& output(int i) const { return tensors_[node.outputs[i]]; }

  // Numbers that the node needs beside its inputs, as a constant that has the name of output 0
  // followed by `suffix`; and one alone.
  Operand KnownFloats(absl::string_view suffix, Dims dims, std::vector<float> numbers) const;
  Operand KnownFloat(absl::string_view suffix, float number) const {
    return KnownFloats(suffix, {}, {number});
  }

  // Appends an operation. Its result gets `dims` and the name of output 0 followed by `suffix`. Its
  // type is `type`, or the source's if the operation only moves or compares elements.
  //   kInvalidArgument  a dimension below 1, a rank over kMaxRank, a size that overflows
  absl::StatusOr<ValueId> Emit(network::OperationParams params, std::vector<ValueId> srcs,
                               Dims dims, absl::string_view suffix = "",
                               DataType type = DataType::kF32);
  // The same as an operand.
  absl::StatusOr<Operand> EmitOperand(network::OperationParams params, std::vector<ValueId> srcs,
                                      Dims dims, absl::string_view suffix = "",
                                      DataType type = DataType::kF32);
  // A further result, of f32, of the operation that was emitted last.
  ValueId EmitFurther(Dims dims, absl::string_view suffix);
  // Emit() of a Reshape; `src` itself where the dims are equal.
  absl::StatusOr<ValueId> EmitReshape(ValueId src, Dims dims, absl::string_view suffix = "");

  absl::Status SetOutput(ValueId value);
  absl::Status SetOutput(ConstantPtr constant);
  // A value that this node emitted takes the name of output i; an input is passed on as it is.
  absl::Status SetOutput(const Operand& operand, int i = 0);
  // The result of a function of operators, whose error is passed on.
  template <typename Result>
  absl::Status SetOutput(const absl::StatusOr<Result>& result) {
    return result.ok() ? SetOutput(*result) : result.status();
  }

  // Appends the gradients of the sum of y's elements by `xs`; kNoValue: it does not depend on one.
  //   kUnimplemented  one of `all`, which xs are of, is computed from one of xs; as Differentiate()
  absl::StatusOr<std::vector<ValueId>> Differentiate(ValueId y, const std::vector<ValueId>& xs,
                                                     const std::vector<ValueId>& all);

  // Visits a graph in an attribute of the node and returns its outputs. `inputs` are as many as the
  // body's; `suffix` tells visits apart.
  //   kUnimplemented  bodies are visited too often
  // and errors of their nodes.
  absl::StatusOr<std::vector<Operand>> Visit(const Body& body, const std::vector<Operand>& inputs,
                                             absl::string_view suffix = "");

  // The purpose of the network; null for inference.
  const TrainingPurpose* training() const { return repetition_.training; }
  // Input i, a constant of real numbers, as a value that a store keeps though it does not learn.
  // Errors are those of FloatsInPlace().
  absl::StatusOr<ValueId> Kept(int i);
  void AddStatistics(network::RunningStatistics statistics) {
    network_->statistics.push_back(std::move(statistics));
  }

  // A value that every run draws (Network::masks). kResourceExhausted: images of 2^32 elements.
  absl::StatusOr<ValueId> AddMask(const network::DropoutMask& mask, const Dims& dims);

  // For long loops over elements: not OK where the work is to end.
  absl::Status Interrupted() const {
    const bool asks = repetition_.interrupted != nullptr && *repetition_.interrupted;
    return asks ? (*repetition_.interrupted)() : absl::OkStatus();
  }

 private:
  const ModelGraph& graph_;
  std::vector<Operand>& tensors_;  // by TensorId
  network::Network* network_;
  const NodeVisitor visit_nodes_;
  Repetition repetition_;
  ValueId first_own_value_;  // values from here on were emitted by this node
};

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_NODE_CONTEXT_H_
