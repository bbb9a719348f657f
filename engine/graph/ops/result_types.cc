// SPDX-License-Identifier: Apache-2.0
#include "engine/graph/ops/result_types.h"

#include "absl/algorithm/container.h"
#include "absl/strings/string_view.h"

namespace tilewire::graph {
namespace {

constexpr absl::string_view kAlways[] = {
    "And",           "ArgMax",         "ArgMin", "ConvInteger", "Equal",
    "Greater",       "GreaterOrEqual", "IsInf",  "IsNaN",       "Less",
    "LessOrEqual",   "MatMulInteger",  "Not",    "Or",          "QLinearConv",
    "QLinearMatMul", "QuantizeLinear", "Shape",  "Size",        "Xor"};
constexpr absl::string_view kInSecondOutput[] = {"Dropout", "MaxPool", "TopK"};

bool CastsToIntegers(const Node& node) {
  const int64_t to = node.Int("to", onnx::TensorProto::FLOAT).value_or(onnx::TensorProto::FLOAT);
  return to != onnx::TensorProto::FLOAT && to != onnx::TensorProto::DOUBLE;
}

}  // namespace

bool GivesIntegers(const NodeContext& context, int i) {
  const std::string& op = context.node.op();
  if (absl::c_linear_search(kAlways, op)) return true;
  if (i == 1 && absl::c_linear_search(kInSecondOutput, op)) return true;
  if (op == "Cast") return CastsToIntegers(context.node);
  if (op == "DequantizeLinear") return false;
  if (op == "DynamicQuantizeLinear") return i != 1;
  if (op == "Where") return context.IsInteger(1);
  return context.input_count() > 0 && context.Has(0) && context.IsInteger(0);
}

}  // namespace tilewire::graph
