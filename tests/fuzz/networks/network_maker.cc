// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/networks/network_maker.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/byte_source.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/graph_builder.h"
#include "engine/onnx/node_visit.h"
#include "engine/onnx/specialization.h"
#include "tests/fuzz/networks/work.h"
#include "tests/support/random_choice.h"

namespace tilewire::testing {
namespace {

using onnx::TensorProto;

constexpr char kMicrosoft[] = "com.microsoft";
constexpr int64_t kMostElements = 4096;  // of a tensor

// The domain has one version.
void ImportMicrosoft(OnnxBuilder* model) {
  onnx::OperatorSetIdProto* import = model->proto().add_opset_import();
  import->set_domain(kMicrosoft);
  import->set_version(1);
}

// The type that a model would declare for a value; integers that f32 holds go in as truth values
// do.
ElementType DeclaredType(DataType held, bool is_integer) {
  if (held == DataType::kF32) return is_integer ? TensorProto::BOOL : TensorProto::FLOAT;
  for (int type = TensorProto::FLOAT; type <= TensorProto::BFLOAT16; ++type) {
    if (reader::TypeOfElements(type) == held) return static_cast<ElementType>(type);
  }
  return TensorProto::FLOAT;
}

struct Visited {
  network::Network network;
  std::vector<reader::Operand> outputs;
};

// The model's last node, for the dims that it declares.
absl::StatusOr<Visited> Visit(const OnnxBuilder& model) {
  const std::string bytes = model.Serialize();
  ABSL_ASSIGN_OR_RETURN(reader::OnnxFile file,
                        reader::ReadOnnxFile(reader::MemorySource(bytes), /*model_path=*/""));
  ABSL_ASSIGN_OR_RETURN(const reader::ModelGraph graph, reader::BuildModelGraph(std::move(file)));
  ABSL_ASSIGN_OR_RETURN(std::vector<reader::Operand> tensors, reader::FoldConstants(graph));
  std::vector<Dims> dims;
  for (const reader::DeclaredTensor& input : graph.inputs) dims.push_back(input.dims);
  Visited visited;
  ABSL_RETURN_IF_ERROR(reader::AddInputs(graph, dims, {}, &tensors, &visited.network));
  ABSL_RETURN_IF_ERROR(reader::VisitNodes(graph.nodes, graph, &tensors, &visited.network));
  for (const reader::DeclaredTensor& output : graph.outputs)
    visited.outputs.push_back(tensors[output.id]);
  return visited;
}

}  // namespace

NetworkMaker::NetworkMaker(Random& random, int64_t opset, int64_t most_work)
    : random_(random), opset_(opset), work_left_(most_work), model_(opset) {
  ImportMicrosoft(&model_);
}

std::string NetworkMaker::NewName(const char* kind) { return absl::StrCat(kind, names_++); }

Made NetworkMaker::Input(Dims dims, ElementType type) {
  Made made{NewName("x"), std::move(dims), type};
  inputs_.push_back(made);
  computed_.push_back(made);
  return made;
}

Made NetworkMaker::Keep(Made made, TensorProto elements) {
  elements.set_name(made.name);
  known_[made.name] = std::move(elements);
  made.is_known = true;
  return made;
}

Made NetworkMaker::Floats(Dims dims, float low, float high) {
  TensorProto tensor;
  tensor.set_data_type(TensorProto::FLOAT);
  for (int64_t dim : dims) tensor.add_dims(dim);
  const int64_t steps = static_cast<int64_t>((high - low) * 8);
  for (int64_t i = ElementCount(dims).value_or(0); i > 0; --i)
    tensor.add_float_data(low + static_cast<float>(random_.Integer(0, steps)) / 8);
  return Keep({NewName("c"), std::move(dims)}, std::move(tensor));
}

Made NetworkMaker::Number(float number, int rank) {
  TensorProto tensor;
  tensor.set_data_type(TensorProto::FLOAT);
  for (int d = 0; d < rank; ++d) tensor.add_dims(1);
  tensor.add_float_data(number);
  return Keep({NewName("c"), Dims(rank, 1)}, std::move(tensor));
}

Made NetworkMaker::Integers(std::vector<int64_t> values) {
  TensorProto tensor;
  tensor.set_data_type(TensorProto::INT64);
  tensor.add_dims(static_cast<int64_t>(values.size()));
  for (int64_t value : values) tensor.add_int64_data(value);
  return Keep({NewName("c"), {static_cast<int64_t>(values.size())}, TensorProto::INT64},
              std::move(tensor));
}

Made NetworkMaker::IntegersOf(Dims dims, ElementType type, int64_t low, int64_t high) {
  TensorProto tensor;
  tensor.set_data_type(type);
  for (int64_t dim : dims) tensor.add_dims(dim);
  for (int64_t i = ElementCount(dims).value_or(0); i > 0; --i) {
    const int64_t value = random_.Integer(low, high);
    type == TensorProto::INT64 ? tensor.add_int64_data(value)
                               : tensor.add_int32_data(static_cast<int32_t>(value));
  }
  return Keep({NewName("c"), std::move(dims), type}, std::move(tensor));
}

Made NetworkMaker::Result(const reader::Operand& operand, const network::Network& network,
                          const std::string& name) {
  if (operand.value != network::kNoValue) {
    const DataType held = network.values[operand.value].type;
    return {name, operand.dims, DeclaredType(held, operand.is_integer)};
  }
  const absl::StatusOr<network::ConstantPtr> constant = network::InMemory(operand.constant);
  if (!constant.ok()) return {};
  TensorProto tensor;
  for (int64_t dim : operand.dims) tensor.add_dims(dim);
  const bool is_float = (*constant)->is_float;
  tensor.set_data_type(is_float ? TensorProto::FLOAT : TensorProto::INT64);
  for (float element : (*constant)->floats) tensor.add_float_data(element);
  for (int64_t element : (*constant)->ints) tensor.add_int64_data(element);
  return Keep({name, operand.dims, is_float ? TensorProto::FLOAT : TensorProto::INT64},
              std::move(tensor));
}

std::vector<Made> NetworkMaker::Try(const onnx::NodeProto& node, const std::vector<Made>& inputs) {
  OnnxBuilder alone(opset_);
  ImportMicrosoft(&alone);
  std::set<std::string> added;
  for (const Made& input : inputs) {
    if (!input.exists() || !added.insert(input.name).second) continue;
    if (input.is_known) {
      *alone.graph().add_initializer() = known_.at(input.name);
    } else {
      alone.Input(input.name, ListOf(input.dims), input.type);
    }
  }
  if (alone.graph().input().empty()) alone.Input("unused", {1});
  *alone.graph().add_node() = node;
  for (const std::string& output : node.output()) alone.Output(output);
  const absl::StatusOr<Visited> visited = Visit(alone);
  if (!visited.ok()) return {};
  const int64_t work = WorkOf(visited->network);
  if (work > work_left_) return {};
  std::vector<Made> results;
  for (size_t i = 0; i < visited->outputs.size(); ++i) {
    const reader::Operand& operand = visited->outputs[i];
    const bool is_tensor = operand.defined() && operand.sequence == nullptr;
    if (!is_tensor || ElementCount(operand.dims).value_or(INT64_MAX) > kMostElements) return {};
    results.push_back(Result(operand, visited->network, node.output(static_cast<int>(i))));
    if (!results.back().exists()) return {};
  }
  work_left_ -= work;
  return results;
}

std::vector<Made> NetworkMaker::Nodes(const std::string& op, const std::vector<Made>& inputs,
                                      const Attributes& attributes, int outputs) {
  onnx::NodeProto node;
  const absl::string_view prefix = "com.microsoft.";
  const bool is_microsoft = absl::StartsWith(op, prefix);
  node.set_op_type(is_microsoft ? op.substr(prefix.size()) : op);
  if (is_microsoft) node.set_domain(kMicrosoft);
  node.set_name(NewName("n"));
  for (const Made& input : inputs) node.add_input(input.name);
  for (int i = 0; i < outputs; ++i) node.add_output(NewName("t"));
  for (const onnx::AttributeProto& attribute : attributes) *node.add_attribute() = attribute;
  std::vector<Made> results = Try(node, inputs);
  if (results.empty()) return results;
  *model_.graph().add_node() = node;
  operators_.insert(op);
  for (const Made& input : inputs) {
    read_.insert(input.name);
    const auto producer = operator_of_.find(input.name);
    if (producer != operator_of_.end()) neighbours_.insert(absl::StrCat(producer->second, " ", op));
  }
  for (const Made& result : results) {
    operator_of_[result.name] = op;
    if (!result.is_known) computed_.push_back(result);
  }
  return results;
}

Made NetworkMaker::Node(const std::string& op, const std::vector<Made>& inputs,
                        const Attributes& attributes) {
  if (!inputs.empty() && !inputs[0].exists()) return {};  // of a pattern that was given up
  std::vector<Made> results = Nodes(op, inputs, attributes);
  return results.empty() ? Made() : std::move(results[0]);
}

Dims NetworkMaker::RandomDims(int rank) {
  Dims dims;
  int64_t left = 400;
  for (int d = 0; d < rank; ++d) {
    const int64_t most = std::min<int64_t>(left, Chance(random_, 10) ? 20 : rank > 4 ? 3 : 6);
    dims.push_back(random_.Integer(1, std::max<int64_t>(1, most)));
    left /= dims.back();
  }
  return dims;
}

Made NetworkMaker::Any() {
  if (computed_.empty() || Chance(random_, 10))
    return Input(RandomDims(static_cast<int>(random_.Integer(0, 8))));
  const int64_t last = static_cast<int64_t>(computed_.size()) - 1;
  const int64_t back = Chance(random_, 70) ? std::min<int64_t>(last, random_.Integer(0, 2))
                                           : random_.Integer(0, last);
  return computed_[last - back];
}

Made NetworkMaker::AnyOf(int least_rank, int most_rank, ElementType type) {
  for (int tries = 0; tries < 6; ++tries) {
    const Made one = Any();
    if (one.type == type && one.rank() >= least_rank && one.rank() <= most_rank) return one;
  }
  return Input(RandomDims(static_cast<int>(random_.Integer(least_rank, most_rank))), type);
}

onnx::ModelProto NetworkMaker::Finish() {
  if (inputs_.empty()) Input({1});
  for (const Made& input : inputs_) model_.Input(input.name, ListOf(input.dims), input.type);
  for (const auto& [name, tensor] : known_) {
    const bool is_made = absl::StartsWith(name, "t");  // by a node
    if (!is_made && read_.contains(name)) *model_.graph().add_initializer() = tensor;
  }
  bool any = false;
  for (const Made& made : computed_) {
    if (read_.contains(made.name) && !Chance(random_, 5)) continue;
    // Integers that f32 holds may be declared of any type.
    model_.Output(made.name, made.type == TensorProto::BOOL ? TensorProto::INT64 : made.type);
    any = true;
  }
  if (!any) model_.Output(computed_.back().name, computed_.back().type);
  return model_.proto();
}

}  // namespace tilewire::testing
