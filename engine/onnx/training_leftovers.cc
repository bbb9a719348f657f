// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/training_leftovers.h"

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/onnx/file/tensor_reader.h"

namespace tilewire::reader {
namespace {

using network::ConstantPtr;

// The nodes of one kind.
struct Found {
  int count = 0;
  std::string first;

  void Add(const onnx::NodeProto& node) {
    if (count++ == 0) first = node.name().empty() ? node.output(0) : node.name();
  }
  // "2 Dropout nodes (the first is 'drop')"
  std::string Text(absl::string_view op) const {
    const absl::string_view which = count == 1 ? "'" : "the first is '";
    return absl::StrCat(count, " ", op, count == 1 ? " node (" : " nodes (", which,
                        first.substr(0, 200), "')");
  }
};

// The first number of an initializer or of the tensor in a Constant node; `absent` of an input that
// is left out, and of what the file does not hold.
double NumberOf(const OnnxFile& file, const onnx::NodeProto& node, int input, double absent) {
  if (input >= node.input_size() || node.input(input).empty()) return absent;
  const std::string& name = node.input(input);
  const auto held = absl::c_find_if(
      file.initializers, [&name](const ConstantPtr& constant) { return constant->name == name; });
  ConstantPtr constant = held == file.initializers.end() ? nullptr : *held;
  for (const onnx::NodeProto& maker : file.graph->node()) {
    const bool makes = maker.op_type() == "Constant" && absl::c_linear_search(maker.output(), name);
    for (const onnx::AttributeProto& attribute : maker.attribute()) {
      if (!makes || attribute.name() != "value") continue;
      if (auto read = ReadTensor(attribute.t()); read.ok()) constant = *std::move(read);
    }
  }
  if (constant == nullptr) return absent;
  if (!constant->ints.empty()) return static_cast<double>(constant->ints[0]);
  return constant->floats.empty() ? absent : constant->floats[0];
}

bool Drops(const OnnxFile& file, const onnx::NodeProto& node) {
  return node.op_type() == "Dropout" && NumberOf(file, node, 2, 0) != 0 &&
         NumberOf(file, node, 1, 0.5) != 0;
}

bool FollowsTheBatch(const onnx::NodeProto& node) {
  return node.op_type() == "BatchNormalization" &&
         absl::c_any_of(node.attribute(), [](const onnx::AttributeProto& attribute) {
           return attribute.name() == "training_mode" && attribute.i() != 0;
         });
}

}  // namespace

std::vector<std::string> TrainingLeftovers(const OnnxFile& file) {
  Found dropouts, normalizations;
  for (const onnx::NodeProto& node : file.graph->node()) {
    if (!IsDefaultDomain(node.domain()) || node.output_size() == 0) continue;
    if (Drops(file, node)) dropouts.Add(node);
    if (FollowsTheBatch(node)) normalizations.Add(node);
  }
  std::vector<std::string> sentences;
  if (dropouts.count > 0) {
    sentences.push_back(absl::StrCat(
        "training_mode is true in ", dropouts.Text("Dropout"),
        ": elements are dropped in every answer, always the same ones; a file that is exported for "
        "evaluation drops none"));
  }
  if (normalizations.count > 0) {
    sentences.push_back(absl::StrCat(
        "training_mode is 1 in ", normalizations.Text("BatchNormalization"),
        ": examples are normalized by the statistics of their batch, so that answers depend on the "
        "others in it; a file that is exported for evaluation uses its running statistics"));
  }
  return sentences;
}

}  // namespace tilewire::reader
