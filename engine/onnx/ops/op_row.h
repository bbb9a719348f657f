// SPDX-License-Identifier: Apache-2.0
//
// A row of the table of operators (op_table.h), and the columns that several families share.
#ifndef ENGINE_ONNX_OPS_OP_ROW_H_
#define ENGINE_ONNX_OPS_OP_ROW_H_

#include <cstdint>
#include <initializer_list>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/onnx/file/node.h"
#include "engine/onnx/node_context.h"
#include "engine/onnx/typed_node.h"

namespace tilewire::reader {

// Whether a node whose inputs are all constants is computed when the model is loaded.
enum class Folds : uint8_t {
  kNever,
  kInMemory,  // yes: its build() reads elements, which are loaded before it and released after it
  kInPlace,   // yes, without elements in memory: its build() passes on constants that lie in a file
};

// Types of results (typed_node.h).
ElementType LikeFirstInput(const TypedNode& node, int i);
ElementType LikeSecondInput(const TypedNode& node, int i);
ElementType LikeThirdInput(const TypedNode& node, int i);
ElementType TruthValues(const TypedNode& node, int i);
ElementType Indices(const TypedNode& node, int i);
// Output 0 is like the first input; the others hold indices.
ElementType IndicesAfterFirst(const TypedNode& node, int i);

// Writes a node as other operators (composition.h). Inputs and outputs of the node are resolved.
using Compose = absl::StatusOr<std::string> (*)(const Node& node);

// A set of inputs by their numbers.
constexpr uint8_t Inputs(std::initializer_list<int> numbers) {
  uint8_t bits = 0;
  for (int number : numbers) bits |= static_cast<uint8_t>(1 << number);
  return bits;
}

// A row holds for all opsets that are read: where they differ, build() asks for the node's.
struct OpRow {
  absl::string_view name;  // ONNX's; of another domain: "com.microsoft.QGemm"
  int since;               // the first opset that has it
  int min_inputs;
  int max_inputs;                // INT_MAX: any number
  absl::string_view attributes;  // all that it may have, in any opset, with blanks between
  // Appends the node's operations to the network, or folds the node.
  //   kInvalidArgument  inputs or attributes that the operator does not allow
  //   kUnimplemented    a use that the engine has no operation for
  absl::Status (*build)(NodeContext& context);
  Folds folds = Folds::kNever;
  ResultType result_type = LikeFirstInput;
  // Inputs that give shapes, axes or counts: build() needs their elements.
  uint8_t deciding = 0;
  Compose compose = nullptr;    // set in the place of `build`
  bool may_omit_first = false;  // of several outputs
  // The size of its result, or where its elements go, depends on elements: build() takes constants
  // alone, and where they are computed, it runs once they are (cut.h).
  bool is_late = false;
  // Refuses what build() would refuse by the attributes alone, before it is known whether it runs.
  absl::Status (*check)(const Node& node) = nullptr;
  // The dims of a late node's result where those of input 0 give them; its type is that of input 0.
  Dims (*late_dims)(const Dims& first) = nullptr;
  // Inputs may be sequences of tensors (sequence.cc).
  bool takes_sequences = false;
  bool is_of_reals = false;  // input 0 holds real numbers, by ONNX's types
  bool takes_small = false;  // inputs may be of a small type (element_type.h)
  // Inputs that training may change (trainable.h), and whether it may if they are one number.
  uint8_t trains = 0;
  bool trains_one_number = true;
  // The attributes y, xs and zs name tensors, which the node reads (Node::captures) and which other
  // nodes compute from each other: models with such a node are planned as a whole, without passes.
  bool names_tensors = false;
  // Integers stand for real numbers here, so that a model with such a node is not trained.
  bool is_quantized = false;
};

inline constexpr uint8_t kEveryInput = 0xFF;  // of any number

// Whether input i of an operator may learn.
constexpr bool MayLearn(const OpRow& row, size_t i) {
  return row.trains == kEveryInput || (i < 8 && (row.trains >> i & 1) != 0);
}

constexpr OpRow TakesSmall(OpRow row) {
  row.takes_small = true;
  return row;
}

constexpr OpRow TrainsFirst(OpRow row) {  // of operators that move elements
  row.trains = Inputs({0});
  return TakesSmall(row);
}
constexpr OpRow TrainsWeights(OpRow row) {  // and biases
  row.trains = Inputs({1, 2});
  return row;
}
constexpr OpRow TrainsRecurrent(OpRow row) {  // both weights, biases, peepholes
  row.trains = Inputs({1, 2, 3, 7});
  return row;
}
constexpr OpRow TrainsEvery(OpRow row) {
  row.trains = kEveryInput;
  return row;
}

// A single number beside what is computed is a constant of a formula, not a weight.
constexpr OpRow TrainsTensors(OpRow row) {
  row = TrainsEvery(row);
  row.trains_one_number = false;
  return row;
}

constexpr OpRow Quantized(OpRow row) {
  row.is_quantized = true;
  return row;
}

constexpr OpRow OfReals(OpRow row) {
  row.is_of_reals = true;
  return row;
}

constexpr OpRow Late(OpRow row, Dims (*dims)(const Dims& first) = nullptr) {
  row.is_late = true;
  row.late_dims = dims;
  return row;
}

constexpr OpRow OfSequences(OpRow row) {
  row.takes_sequences = true;
  return row;
}

constexpr OpRow MayOmitFirst(OpRow row) {
  row.may_omit_first = true;
  return row;
}

// Defines the function of the family Lrn (op_families.inc):
//
//   TILEWIRE_OPERATORS(Lrn) = {
//       {"LRN", 1, 1, 1, "alpha beta bias size", BuildLrn},
//   };
#define TILEWIRE_OPERATORS(Name)                                      \
  extern const std::initializer_list<OpRow> k##Name##Rows;            \
  absl::Span<const OpRow> Name##Operators() { return k##Name##Rows; } \
  constexpr std::initializer_list<OpRow> k##Name##Rows

}  // namespace tilewire::reader

#endif  // ENGINE_ONNX_OPS_OP_ROW_H_
