// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/conversions.h"

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_set.h"
#include "absl/strings/string_view.h"

namespace tilewire::tuning {
namespace {

constexpr absl::string_view kMoves[] = {"MaxPool",   "Reshape", "Flatten", "Transpose",
                                        "Unsqueeze", "Squeeze", "Identity"};
// Operators that fit between an operation and the conversion of its result.
constexpr absl::string_view kActivations[] = {"Relu", "Clip"};

template <typename Names>
bool IsOneOf(const Names& names, const std::string& op) {
  return absl::c_linear_search(names, op);
}

class ConversionSearch {
 public:
  ConversionSearch(const ModelSource& source, const std::vector<Layer>& layers,
                   const std::vector<bool>& is_int8)
      : source_(source), layer_of_(source.nodes().size(), -1) {
    for (size_t i = 0; i < layers.size(); ++i) {
      if (is_int8[i]) layer_of_[layers[i].node] = static_cast<int>(i);
    }
    FindOrigins();
  }

  Conversions Run() {
    for (int i = static_cast<int>(source_.nodes().size()) - 1; i >= 0; --i) Visit(i);
    Conversions conversions;
    AddInOrder(&conversions);
    for (const SourceNode& node : source_.nodes()) AddTies(node.proto, &conversions);
    return conversions;
  }

 private:
  // Whether what an int8 layer computes comes through to a node's result.
  void FindOrigins() {
    is_from_layer_.resize(source_.nodes().size());
    for (size_t i = 0; i < is_from_layer_.size(); ++i) {
      const onnx::NodeProto& node = source_.nodes()[i].proto;
      const std::string& op = node.op_type();
      const bool takes_first =
          IsOneOf(kMoves, op) || IsOneOf(kActivations, op) || op == "BatchNormalization";
      const bool takes_all = op == "Add" || op == "Concat";
      is_from_layer_[i] = layer_of_[i] >= 0;
      for (int k = 0; k < node.input_size() && (takes_all || (takes_first && k == 0)); ++k)
        is_from_layer_[i] = is_from_layer_[i] || IsFromLayer(node.input(k));
    }
  }

  bool IsFromLayer(const std::string& tensor) const {
    const int producer = source_.ProducerOf(tensor);
    return producer >= 0 && is_from_layer_[producer];
  }
  bool IsConverted(const std::string& tensor) const { return converted_.contains(tensor); }
  bool IsReadOnce(const std::string& tensor) const {
    return source_.ReadersOf(tensor).size() == 1 && !source_.IsOutput(tensor) &&
           !source_.IsReadInside(tensor);
  }

  // Whether an int8 layer gives the tensor, which nothing else reads: it can add to it.
  bool CanTakeSum(const std::string& tensor) const {
    int producer = source_.ProducerOf(tensor);
    if (producer < 0 || !IsReadOnce(tensor)) return false;
    const onnx::NodeProto& node = source_.nodes()[producer].proto;
    if (node.op_type() == "BatchNormalization") {
      if (!IsReadOnce(node.input(0))) return false;
      producer = source_.ProducerOf(node.input(0));
    }
    return producer >= 0 && layer_of_[producer] >= 0;
  }

  void Visit(int index) {
    const onnx::NodeProto& node = source_.nodes()[index].proto;
    if (layer_of_[index] >= 0) {
      converted_.insert(node.input(0));
      return;
    }
    if (node.output_size() == 0 || node.input_size() == 0) return;
    const std::string& result = node.output(0);
    const bool is_converted = IsConverted(result);
    if (!is_converted && !flows_.contains(result)) return;
    if (IsOneOf(kActivations, node.op_type())) {
      if (IsReadOnce(node.input(0))) flows_.insert(node.input(0));
    } else if (node.op_type() == "Add") {
      VisitSum(node);
    } else if (is_converted && IsOneOf(kMoves, node.op_type()) && IsFromLayer(node.input(0))) {
      converted_.insert(node.input(0));
    }
  }

  void VisitSum(const onnx::NodeProto& node) {
    const std::string &a = node.input(0), &b = node.input(1);
    if (source_.Initializer(a) != nullptr || source_.Initializer(b) != nullptr) return;
    const bool a_takes = CanTakeSum(a), b_takes = CanTakeSum(b);
    if (!a_takes && !b_takes) return;
    // If both can, the one that runs last has the other at hand.
    const bool takes_b = b_takes && (!a_takes || source_.ProducerOf(b) > source_.ProducerOf(a));
    const std::string& addend = takes_b ? a : b;
    if (IsFromLayer(addend)) converted_.insert(addend);
  }

  void AddInOrder(Conversions* conversions) const {
    std::vector<std::pair<int, std::string>> found;
    for (const std::string& tensor : converted_)
      found.emplace_back(source_.ProducerOf(tensor), tensor);
    absl::c_sort(found);
    for (auto& [producer, tensor] : found) conversions->tensors.push_back(std::move(tensor));
  }

  void AddTies(const onnx::NodeProto& node, Conversions* conversions) const {
    if (node.output_size() == 0 || !IsConverted(node.output(0))) return;
    const bool is_concat = node.op_type() == "Concat";
    if (!is_concat && !IsOneOf(kMoves, node.op_type())) return;
    for (int k = 0; k < (is_concat ? node.input_size() : 1); ++k) {
      if (IsConverted(node.input(k))) conversions->ties.emplace_back(node.input(k), node.output(0));
    }
  }

  const ModelSource& source_;
  std::vector<int> layer_of_;  // of each node: the int8 layer that it is; -1: none
  std::vector<bool> is_from_layer_;
  absl::flat_hash_set<std::string> converted_;
  absl::flat_hash_set<std::string> flows_;  // that reach a conversion through activations alone
};

}  // namespace

Conversions FindConversions(const ModelSource& source, const std::vector<Layer>& layers,
                            const std::vector<bool>& is_int8) {
  return ConversionSearch(source, layers, is_int8).Run();
}

}  // namespace tilewire::tuning
