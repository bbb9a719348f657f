// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/empty_tensors.h"

#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/file/onnx_types.h"

namespace tilewire::reader {

using network::Literal;
using network::MakeFloats;
using network::Network;
using network::Operation;
using network::Reduce;
using network::Select;
using network::Value;
using network::ValueId;
namespace {

// The result of a reduction over no elements of f32; nullopt where that is not defined.
std::optional<float> ReductionOfNothing(Reduce::Function function) {
  switch (function) {
    case Reduce::Function::kSum:
    case Reduce::Function::kSumOfAbs:
    case Reduce::Function::kSumOfSquares:
      return 0.0f;
    case Reduce::Function::kProduct:
      return 1.0f;
    case Reduce::Function::kMax:
      return -std::numeric_limits<float>::infinity();
    case Reduce::Function::kMin:
      return std::numeric_limits<float>::infinity();
    case Reduce::Function::kMean:
      break;
  }
  return std::nullopt;
}

// Rewrites the operations of one network into `kept`.
class Elision {
 public:
  explicit Elision(Network* network) : network_(*network) {}

  absl::Status Run() {
    for (Operation& operation : network_.operations) {
      if (IsEmptyValue(operation.dst)) continue;
      if (absl::c_none_of(operation.srcs, [this](ValueId src) { return IsEmptyValue(src); })) {
        kept_.push_back(std::move(operation));
        continue;
      }
      ABSL_RETURN_IF_ERROR(Replace(std::move(operation)));
    }
    AddOutputs();
    network_.operations = std::move(kept_);
    return absl::OkStatus();
  }

 private:
  bool IsEmptyValue(ValueId id) const { return IsEmpty(network_.values[id].dims); }

  absl::Status Replace(Operation operation) {
    if (std::holds_alternative<network::Concat>(operation.params)) {
      std::erase_if(operation.srcs, [this](ValueId src) { return IsEmptyValue(src); });
      if (operation.srcs.size() == 1) operation.params = network::Reshape{};
      kept_.push_back(std::move(operation));
      return absl::OkStatus();
    }
    if (const auto* product = std::get_if<network::InnerProduct>(&operation.params)) {
      if (product->bias.empty()) return Fill(operation, 0);
      Dims row = {1, static_cast<int64_t>(product->bias.size())};
      return Spread(operation, MakeFloats("", row, product->bias));
    }
    if (std::holds_alternative<network::QuantizationRange>(operation.params))
      return Spread(operation, MakeFloats("", {2}, {1, 0}));
    std::optional<float> fill;
    if (std::holds_alternative<network::Matmul>(operation.params)) fill = 0.0f;
    if (const auto* select = std::get_if<Select>(&operation.params)) fill = select->fill;
    if (const auto* reduce = std::get_if<Reduce>(&operation.params))
      fill = ReductionOfNothing(reduce->function);
    if (fill) return Fill(operation, *fill);
    return InvalidArgument("node '", operation.name.substr(0, 200), "' gives ",
                           DimsToString(network_.values[operation.dst].dims),
                           " of a tensor without elements, which is not defined");
  }

  absl::Status Fill(const Operation& operation, float number) {
    const Value& dst = network_.values[operation.dst];
    const Dims one(dst.dims.size(), 1);
    if (!IsIntegerOrBool(dst.type)) return Spread(operation, MakeFloats("", one, {number}));
    const bool is_exact = std::abs(number) <= 128;  // not infinite
    if (!is_exact) {
      return Unimplemented("node '", operation.name.substr(0, 200), "': a limit of ",
                           DataTypeName(dst.type));
    }
    return Spread(operation, network::MakeInts("", one, {static_cast<int64_t>(number)}));
  }

  // The elements, which have dst's rank, repeated along dimensions of 1 up to dst's dims.
  absl::Status Spread(const Operation& operation, network::ConstantPtr elements) {
    const Value dst = network_.values[operation.dst];
    const Dims dims = elements->dims;
    auto named = std::make_shared<network::Constant>(*elements);
    named->name = absl::StrCat(dst.name, "/of_nothing");
    if (dims == dst.dims) {
      kept_.push_back({operation.name, Literal{std::move(named)}, {}, operation.dst});
      return absl::OkStatus();
    }
    Select select;
    for (size_t d = 0; d < dims.size(); ++d) {
      select.from.emplace_back();
      if (dims[d] != dst.dims[d]) select.from[d] = {{0, 0, dst.dims[d]}};
    }
    const ValueId literal = static_cast<ValueId>(network_.values.size());
    network_.values.push_back({named->name, dst.type, dims});
    kept_.push_back({operation.name, Literal{std::move(named)}, {}, literal});
    kept_.push_back({operation.name, std::move(select), {literal}, operation.dst});
    return absl::OkStatus();
  }

  void AddOutputs() {
    std::vector<ValueId> given = network_.inputs;
    for (ValueId output : network_.outputs) {
      if (!IsEmptyValue(output) || absl::c_linear_search(given, output)) continue;
      given.push_back(output);
      const Value& value = network_.values[output];
      network::ConstantPtr nothing = IsIntegerOrBool(value.type)
                                         ? network::MakeInts(value.name, value.dims, {})
                                         : MakeFloats(value.name, value.dims, {});
      kept_.push_back({value.name, Literal{std::move(nothing)}, {}, output});
    }
  }

  Network& network_;
  std::vector<Operation> kept_;
};

}  // namespace

bool IsEmpty(const Dims& dims) { return absl::c_linear_search(dims, 0); }

bool MayDropAll(const network::OperationParams& params) {
  return std::holds_alternative<Select>(params) || std::holds_alternative<Literal>(params) ||
         std::holds_alternative<network::TopK>(params);
}

absl::Status ElideEmpty(Network* network) {
  const auto is_empty = [](const Value& value) { return IsEmpty(value.dims); };
  if (absl::c_none_of(network->values, is_empty)) return absl::OkStatus();
  return Elision(network).Run();
}

}  // namespace tilewire::reader
