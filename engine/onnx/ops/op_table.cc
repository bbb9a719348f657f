// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/op_table.h"

#include <algorithm>
#include <climits>
#include <string>

#include "absl/algorithm/container.h"
#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_file.h"
#include "engine/onnx/file/onnx_types.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {

const std::vector<OpRow>& OpTable() {
  static const auto* const table = [] {
    auto* const rows = new std::vector<OpRow>();
    for (const auto family : kOpFamilies) {
      for (const OpRow& row : family()) rows->push_back(row);
    }
    return rows;
  }();
  return *table;
}

const OpRow* FindOp(const Node& node) {
  static const auto* const rows = [] {
    auto* const by_name = new absl::flat_hash_map<absl::string_view, const OpRow*>();
    for (const OpRow& row : OpTable()) (*by_name)[row.name] = &row;
    return by_name;
  }();
  const std::string& domain = node.proto().domain();
  const auto row =
      rows->find(IsDefaultDomain(domain) ? node.op() : absl::StrCat(domain, ".", node.op()));
  return row == rows->end() ? nullptr : row->second;
}

absl::Status CheckSupported(const Node& node) {
  const OpRow* row = FindOp(node);
  if (row == nullptr)
    return node.Unimplemented(
        "this operator is not supported; engine/onnx/README.md lists those that are");
  if (node.opset() < row->since)
    return node.Invalid("this operator exists from opset ", row->since, " on");
  const int inputs = node.proto().input_size();
  if (inputs < row->min_inputs || inputs > row->max_inputs) return node.Invalid(inputs, " inputs");
  const auto& outputs = node.proto().output();
  const auto is_left_out = [](const std::string& name) { return name.empty(); };
  if (absl::c_all_of(outputs, is_left_out) || (!row->may_omit_first && is_left_out(outputs[0])))
    return node.Invalid("has no output");
  // Which inputs a result may overwrite means nothing; it went with opset 6.
  const bool is_old = IsDefaultDomain(node.proto().domain()) && node.opset() < 6;
  ABSL_RETURN_IF_ERROR(node.CheckAttributes(
      is_old ? absl::StrCat(row->attributes, " consumed_inputs") : std::string(row->attributes)));
  return row->check == nullptr ? absl::OkStatus() : row->check(node);
}

absl::Status CheckInputsPresent(const Node& node) {
  const OpRow* row = FindOp(node);
  if (row == nullptr) return absl::OkStatus();
  const bool takes_any_number = row->max_inputs == INT_MAX && row->min_inputs > 0;
  const size_t required = takes_any_number ? node.inputs.size() : row->min_inputs;
  for (size_t i = 0; i < std::min(required, node.inputs.size()); ++i) {
    if (node.inputs[i] == kNoTensor) return node.Invalid("input ", i, " is missing");
  }
  return absl::OkStatus();
}

absl::Status CheckReals(const Node& node, DataType first) {
  if (!FindOp(node)->is_of_reals || !IsIntegerOrBool(first)) return absl::OkStatus();
  return node.Unimplemented("takes ", DataTypeName(first),
                            " here; supported are f32, f16, bf16 and f64");
}

absl::Status CheckSmall(const Node& node, const std::vector<ElementType>& types) {
  if (FindOp(node)->takes_small) return absl::OkStatus();
  for (size_t i = 0; i < node.inputs.size(); ++i) {
    if (!node.HasInput(i) || !types[node.inputs[i]].is_small()) continue;
    return node.Unimplemented("input ", i, " is of ", types[node.inputs[i]].name(),
                              "; it takes the numbers that DequantizeLinear or Cast makes of them");
  }
  return absl::OkStatus();
}

absl::Status CheckCountable(const Node& node, int64_t size) {
  constexpr int64_t kMost = int64_t{1} << 24;
  if (size <= kMost) return absl::OkStatus();
  return node.Unimplemented("computed indices of ", size,
                            " elements; they are held in f32, which counts ", kMost);
}

absl::StatusOr<int> NormalizeAxis(const Node& node, int64_t axis, size_t rank) {
  const int64_t signed_rank = static_cast<int64_t>(rank);
  if (axis < -signed_rank || axis >= signed_rank) {
    return node.Invalid("axis ", axis, " is outside rank ", rank);
  }
  return static_cast<int>(axis < 0 ? axis + signed_rank : axis);
}

absl::StatusOr<int> ReadAxis(const Node& node, int64_t absent, size_t rank) {
  ABSL_ASSIGN_OR_RETURN(const int64_t axis, node.Int("axis", absent));
  return NormalizeAxis(node, axis, rank);
}

absl::StatusOr<int64_t> NormalizeIndex(const Node& node, int64_t index, int64_t size, int input,
                                       size_t place) {
  if (index >= -size && index < size) return index < 0 ? index + size : index;
  return node.Invalid(
      "index ", index, ", element ", place, " of input ", input, ", is outside a dimension of ",
      size, ": ",
      size == 0 ? "it has no elements" : absl::StrCat("allowed are ", -size, " to ", size - 1));
}

absl::StatusOr<std::vector<int>> DistinctAxes(const Node& node, absl::Span<const int64_t> axes,
                                              size_t rank) {
  std::vector<int> distinct;
  std::vector<bool> seen(rank, false);
  for (int64_t raw_axis : axes) {
    ABSL_ASSIGN_OR_RETURN(const int axis, NormalizeAxis(node, raw_axis, rank));
    if (seen[axis]) return node.Invalid("axis ", axis, " twice");
    seen[axis] = true;
    distinct.push_back(axis);
  }
  return distinct;
}

absl::StatusOr<int64_t> ReadPower(const Node& node) {
  if (node.opset() >= 2) return node.Int("p", 2);
  ABSL_ASSIGN_OR_RETURN(const float power, node.Float("p", 2));
  const auto whole = static_cast<int64_t>(std::clamp(power, 0.0f, 1024.0f));
  if (static_cast<float>(whole) == power) return whole;
  return node.Unimplemented("p ", power, "; supported are integers");
}

absl::StatusOr<bool> ReadSaturate(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t saturate, node.Int("saturate", 1));
  if (saturate == 0 || saturate == 1) return saturate == 1;
  return node.Invalid("saturate ", saturate);
}

}  // namespace tilewire::reader
