// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/node_expansion.h"

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/node_order.h"
#include "engine/onnx/file/tensor_reader.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/op_table.h"

namespace tilewire::reader {
namespace {

// Functions that call each other twice would double at each level.
constexpr int64_t kMostInlined = int64_t{1} << 18;
constexpr int64_t kMostCopied = int64_t{1} << 28;
constexpr size_t kDeepestCall = 64;

std::string QuotedName(absl::string_view name) {
  return absl::StrCat("'", name.substr(0, 200), "'");
}

// 0 where nothing imports the domain.
int64_t OpsetOf(const std::string& domain, const Opsets& opsets) {
  const auto found = opsets.find(IsDefaultDomain(domain) ? "" : domain);
  return found == opsets.end() ? 0 : found->second;
}

std::string FunctionKey(absl::string_view domain, absl::string_view name,
                        absl::string_view overload) {
  const absl::string_view separator("\0", 1);
  return absl::StrCat(IsDefaultDomain(domain) ? "" : domain, separator, name, separator, overload);
}

bool RefersToArguments(const onnx::NodeProto& proto) {
  for (const onnx::AttributeProto& attribute : proto.attribute()) {
    if (attribute.has_ref_attr_name()) return true;
    for (const onnx::NodeProto& node : attribute.g().node()) {
      if (RefersToArguments(node)) return true;
    }
  }
  return false;
}

// Puts the arguments of a call in the place of what refers to them; without an argument the
// attribute is absent.
void Substitute(const NodeExpansion::Arguments& arguments, onnx::NodeProto* proto) {
  std::vector<onnx::AttributeProto> attributes;
  for (onnx::AttributeProto& attribute : *proto->mutable_attribute()) {
    for (onnx::NodeProto& node : *attribute.mutable_g()->mutable_node())
      Substitute(arguments, &node);
    if (!attribute.has_ref_attr_name()) {
      attributes.push_back(std::move(attribute));
      continue;
    }
    const auto argument = arguments.find(attribute.ref_attr_name());
    if (argument == arguments.end()) continue;
    attributes.push_back(argument->second);
    attributes.back().set_name(attribute.name());
  }
  proto->mutable_attribute()->Assign(attributes.begin(), attributes.end());
}

// kInvalidArgument: an attribute that the function does not take.
absl::StatusOr<NodeExpansion::Arguments> ArgumentsOf(const Node& call,
                                                     const onnx::FunctionProto& function) {
  NodeExpansion::Arguments arguments;
  for (const onnx::AttributeProto& absent : function.attribute_proto())
    arguments[absent.name()] = absent;
  for (const onnx::AttributeProto& given : call.proto().attribute()) {
    const auto& names = function.attribute();
    if (arguments.count(given.name()) == 0 &&
        std::find(names.begin(), names.end(), given.name()) == names.end())
      return call.Invalid(absl::StrCat("unknown attribute ", QuotedName(given.name())));
    arguments[given.name()] = given;
  }
  return arguments;
}

}  // namespace

NodeExpansion::NodeExpansion(const std::vector<onnx::FunctionProto>* functions, ModelGraph* graph,
                             Problems* problems)
    : graph_(*graph), problems_(*problems) {
  for (const onnx::FunctionProto& function : *functions)
    functions_[FunctionKey(function.domain(), function.name(), function.overload())] = &function;
}

// Names of inner scopes may be those of others; names of constants have to tell weights apart.
std::string NodeExpansion::Unique(std::string name) {
  if (names_.insert(name).second) return name;
  std::string longer = absl::StrCat(name, "#", graph_.tensor_names.size());
  while (!names_.insert(longer).second) absl::StrAppend(&longer, "'");
  return longer;
}

absl::Status NodeExpansion::Charge(const Node& node, int64_t nodes, const std::string& prefix) {
  copied_ += (nodes + 1) * static_cast<int64_t>(prefix.size());
  if (copied_ <= kMostCopied) return absl::OkStatus();
  return node.Invalid("functions or graphs in it hold too many bytes of names");
}

absl::StatusOr<TensorId> NodeExpansion::Define(const std::string& name, Scope* scope) {
  if (name.empty()) return InvalidArgument("a tensor without a name");
  const auto result = scope->results.find(name);
  const TensorId id = result != scope->results.end()
                          ? result->second
                          : static_cast<TensorId>(graph_.tensor_names.size());
  if (!scope->ids.try_emplace(name, id).second)
    return InvalidArgument("tensor ", QuotedName(name), " is defined twice");
  if (result != scope->results.end()) {
    scope->results.erase(result);
    return id;
  }
  graph_.tensor_names.push_back(Unique(absl::StrCat(scope->prefix, name)));
  graph_.initializers.push_back(nullptr);
  return id;
}

absl::StatusOr<TensorId> NodeExpansion::Resolve(const std::string& name, const Scope& scope) const {
  for (const Scope* seen = &scope; seen != nullptr; seen = seen->outer) {
    const auto id = seen->ids.find(name);
    if (id != seen->ids.end()) return id->second;
  }
  return InvalidArgument(QuotedName(name), " is defined nowhere");
}

// Operators that the engine has come before functions of the same name, as in ONNX Runtime.
const onnx::FunctionProto* NodeExpansion::FindFunction(const Node& node) const {
  const onnx::NodeProto& call = node.proto();
  if (FindOp(node) != nullptr) return nullptr;
  const auto function =
      functions_.find(FunctionKey(call.domain(), call.op_type(), call.overload()));
  return function == functions_.end() ? nullptr : function->second;
}

absl::StatusOr<const onnx::FunctionProto*> NodeExpansion::CompositionOf(const Node& node,
                                                                        const OpRow& row) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, row.compose(node));
  const auto [known, inserted] = compositions_.try_emplace(text, nullptr);
  if (inserted) {
    ABSL_ASSIGN_OR_RETURN(onnx::FunctionProto function, ReadComposition(text, row.attributes));
    known->second = &graph_.compositions.emplace_back(std::move(function));
  }
  return known->second;
}

absl::StatusOr<const onnx::NodeProto*> NodeExpansion::WithArguments(const onnx::NodeProto& proto,
                                                                    const Scope& scope) {
  if (scope.arguments == nullptr || !RefersToArguments(proto)) return &proto;
  onnx::NodeProto copy = proto;
  Substitute(*scope.arguments, &copy);
  copied_ += static_cast<int64_t>(copy.ByteSizeLong());
  if (copied_ > kMostCopied) return InvalidArgument("functions of too many bytes");
  return &graph_.rewritten.emplace_back(std::move(copy));
}

absl::Status NodeExpansion::DefineOutputs(Node* node, Scope* scope) {
  for (const std::string& output : node->proto().output()) {
    if (output.empty()) {
      node->outputs.push_back(kNoTensor);
      continue;
    }
    const absl::StatusOr<TensorId> id = Define(output, scope);
    if (!id.ok()) return node->Invalid(id.status().message());
    node->outputs.push_back(*id);
  }
  return absl::OkStatus();
}

absl::Status NodeExpansion::ConnectInputs(Node* node, const Scope& scope) const {
  for (const std::string& input : node->proto().input()) {
    if (input.empty()) {
      node->inputs.push_back(kNoTensor);
      continue;
    }
    const absl::StatusOr<TensorId> id = Resolve(input, scope);
    if (!id.ok()) return node->Invalid("input ", id.status().message());
    node->inputs.push_back(*id);
  }
  return absl::OkStatus();
}

absl::Status NodeExpansion::CaptureNamed(Node* node, const Scope& scope) const {
  ABSL_ASSIGN_OR_RETURN(const std::string y, node->String("y", ""));
  std::vector<std::string> names = {y};
  for (const char* attribute : {"xs", "zs"}) {
    ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> more, node->Strings(attribute));
    names.insert(names.end(), more.begin(), more.end());
  }
  for (const std::string& name : names) {
    const absl::StatusOr<TensorId> id = Resolve(name, scope);
    if (!id.ok()) return node->Invalid(id.status().message());
    if (*id == kNoTensor)
      return node->Invalid(QuotedName(name), " is an input that its function's call leaves out");
    node->captures.push_back(*id);
  }
  return absl::OkStatus();
}

absl::Status NodeExpansion::AddInitializers(const onnx::GraphProto& graph, Scope* scope) {
  const auto add = [&](const std::string& name,
                       absl::StatusOr<ConstantPtr> constant) -> absl::Status {
    ABSL_ASSIGN_OR_RETURN(const TensorId id, Define(name, scope));
    ABSL_RETURN_IF_ERROR(constant.status());
    graph_.initializers[id] =
        network::Reshaped(**constant, graph_.tensor_names[id], (*constant)->dims);
    graph_.weights_bytes += (*constant)->count() * network::BytesOfElement(**constant);
    return absl::OkStatus();
  };
  for (const onnx::TensorProto& tensor : graph.initializer())
    ABSL_RETURN_IF_ERROR(add(tensor.name(), ReadTensor(tensor)));
  for (const onnx::SparseTensorProto& tensor : graph.sparse_initializer())
    ABSL_RETURN_IF_ERROR(add(tensor.values().name(), ReadTensor(tensor)));
  return absl::OkStatus();
}

absl::Status NodeExpansion::AddBodies(Node* node, const Scope& scope) {
  const TensorId first_inner = static_cast<TensorId>(graph_.tensor_names.size());
  for (const onnx::AttributeProto& attribute : node->proto().attribute()) {
    if (!attribute.has_g()) continue;
    auto body = std::make_shared<Body>();
    Scope inner{&scope,       absl::StrCat(node->name(), "/", attribute.name(), "/"),
                scope.opsets, scope.arguments,
                {},           {}};
    ABSL_RETURN_IF_ERROR(
        Charge(*node, attribute.g().node_size() + attribute.g().initializer_size(), inner.prefix));
    const absl::Status initializers = AddInitializers(attribute.g(), &inner);
    if (!initializers.ok()) return node->Invalid(initializers.message());
    for (const onnx::ValueInfoProto& input : attribute.g().input()) {
      ABSL_ASSIGN_OR_RETURN(body->inputs.emplace_back(), Define(input.name(), &inner));
    }
    ABSL_RETURN_IF_ERROR(Expand(attribute.g().node(), &inner, &body->nodes));
    ABSL_RETURN_IF_ERROR(OrderNodes(&body->nodes));
    for (const onnx::ValueInfoProto& output : attribute.g().output()) {
      ABSL_ASSIGN_OR_RETURN(body->outputs.emplace_back(), Resolve(output.name(), inner));
      if (body->outputs.back() == kNoTensor)
        return node->Invalid("gives ", QuotedName(output.name()),
                             ", an input that its function's call leaves out");
    }
    std::vector<TensorId> read = body->outputs;
    for (const Node& one : body->nodes) {
      read.insert(read.end(), one.inputs.begin(), one.inputs.end());
      read.insert(read.end(), one.captures.begin(), one.captures.end());
    }
    for (TensorId id : read) {
      if (id != kNoTensor && id < first_inner) node->captures.push_back(id);
    }
    node->bodies[attribute.name()] = std::move(body);
  }
  return absl::OkStatus();
}

// Gives the function's inputs and outputs the ids of the call's. An output that is an input, or one
// that another output is already, is copied.
absl::Status NodeExpansion::Bind(const Node& call, const onnx::FunctionProto& function,
                                 Scope* inner, std::vector<Node>* nodes) {
  const int inputs = static_cast<int>(call.inputs.size());
  if (inputs > function.input_size() ||
      static_cast<int>(call.outputs.size()) > function.output_size())
    return call.Invalid(absl::StrCat(inputs, " inputs and ", call.outputs.size(),
                                     " outputs of a function that has ", function.input_size(),
                                     " and ", function.output_size()));
  for (int i = 0; i < function.input_size(); ++i)
    inner->ids[function.input(i)] = i < inputs ? call.inputs[i] : kNoTensor;
  for (size_t i = 0; i < call.outputs.size(); ++i) {
    const std::string& name = function.output(static_cast<int>(i));
    if (call.outputs[i] == kNoTensor) continue;
    const auto input = inner->ids.find(name);
    if (input == inner->ids.end() && inner->results.try_emplace(name, call.outputs[i]).second)
      continue;
    onnx::NodeProto& copy = graph_.rewritten.emplace_back();
    copy.set_op_type("Identity");
    copy.add_input(name);
    copy.add_output(name);
    Node& node = nodes->emplace_back(&copy, 0, call.opset(), inner->prefix);
    node.inputs = {input != inner->ids.end() ? input->second : inner->results[name]};
    node.outputs = {call.outputs[i]};
    if (node.inputs[0] == kNoTensor)
      return call.Invalid(absl::StrCat("leaves out ", QuotedName(name), ", which is an output"));
  }
  return absl::OkStatus();
}

absl::Status NodeExpansion::Inline(const Node& call, const onnx::FunctionProto& function,
                                   const Scope& scope, std::vector<Node>* nodes) {
  if (std::find(active_.begin(), active_.end(), &function) != active_.end())
    return call.Invalid("a function that calls itself");
  if (active_.size() == kDeepestCall)
    return call.Invalid(absl::StrCat("functions in more than ", kDeepestCall, " others"));
  inlined_ += function.node_size();
  if (inlined_ > kMostInlined)
    return call.Invalid(absl::StrCat("functions of more than ", kMostInlined, " nodes"));
  ABSL_ASSIGN_OR_RETURN(const Arguments arguments, ArgumentsOf(call, function));
  Opsets opsets = *scope.opsets;
  for (const onnx::OperatorSetIdProto& entry : function.opset_import())
    opsets[IsDefaultDomain(entry.domain()) ? "" : entry.domain()] = entry.version();
  Scope inner{nullptr, absl::StrCat(call.name(), "/"), &opsets, &arguments, {}, {}};
  ABSL_RETURN_IF_ERROR(Charge(call, function.node_size(), inner.prefix));
  ABSL_RETURN_IF_ERROR(Bind(call, function, &inner, nodes));
  active_.push_back(&function);
  ABSL_RETURN_IF_ERROR(Expand(function.node(), &inner, nodes));
  active_.pop_back();
  if (inner.results.empty()) return absl::OkStatus();
  return call.Invalid(absl::StrCat("a function that does not compute its output ",
                                   QuotedName(inner.results.begin()->first)));
}

absl::Status NodeExpansion::Expand(const NodeProtos& protos, Scope* scope,
                                   std::vector<Node>* nodes) {
  std::vector<Node> found;
  found.reserve(protos.size());
  for (const onnx::NodeProto& proto : protos) {
    ABSL_ASSIGN_OR_RETURN(const onnx::NodeProto* own, WithArguments(proto, *scope));
    Node& node = found.emplace_back(own, static_cast<int>(found.size()),
                                    OpsetOf(own->domain(), *scope->opsets), scope->prefix);
    const absl::Status supported = CheckSupported(node);
    if (!supported.ok() && FindFunction(node) == nullptr) problems_.Add(node, supported);
    ABSL_RETURN_IF_ERROR(DefineOutputs(&node, scope));
  }
  for (Node& node : found) {
    ABSL_RETURN_IF_ERROR(ConnectInputs(&node, *scope));
    const absl::Status present = CheckInputsPresent(node);
    if (!present.ok() && FindFunction(node) == nullptr) problems_.Add(node, present);
    const OpRow* const row = FindOp(node);
    const onnx::FunctionProto* function = FindFunction(node);
    if (row != nullptr && row->compose != nullptr) {
      const absl::StatusOr<const onnx::FunctionProto*> composition = CompositionOf(node, *row);
      if (!composition.ok()) problems_.Add(node, composition.status());
      if (!composition.ok()) continue;
      function = *composition;
    }
    if (function != nullptr) {
      ABSL_RETURN_IF_ERROR(Inline(node, *function, *scope, nodes));
      continue;
    }
    ABSL_RETURN_IF_ERROR(AddBodies(&node, *scope));
    if (row != nullptr && row->names_tensors) ABSL_RETURN_IF_ERROR(CaptureNamed(&node, *scope));
    nodes->push_back(std::move(node));
  }
  return absl::OkStatus();
}

}  // namespace tilewire::reader
