// SPDX-License-Identifier: Apache-2.0
#include "engine/network/training/gradient_context.h"

#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/check.h"

namespace tilewire::network {

GradientContext::GradientContext(Network* network, size_t operation, ValueId gradient,
                                 const std::vector<bool>& is_wanted,
                                 std::vector<std::vector<ValueId>>* contributions)
    : network_(*network),
      operation_(operation),
      forward_(network->operations[operation]),
      gradient_(gradient),
      first_value_(network->values.size()),
      is_wanted_(is_wanted),
      contributions_(*contributions) {}

ValueId GradientContext::NewValue(DataType type, Dims dims) {
  network_.values.push_back({absl::StrCat(forward_.name, " backward"), type, std::move(dims)});
  return static_cast<ValueId>(network_.values.size()) - 1;
}

ValueId GradientContext::Append(OperationParams params, std::vector<ValueId> srcs, Dims dims) {
  const ValueId dst = NewValue(DataType::kF32, std::move(dims));
  network_.operations.push_back(
      {absl::StrCat(forward_.name, " backward"), std::move(params), std::move(srcs), dst});
  return dst;
}

ValueId GradientContext::AppendResult(Dims dims) {
  const ValueId dst = NewValue(DataType::kF32, std::move(dims));
  network_.operations.back().more_dsts.push_back(dst);
  return dst;
}

ValueId GradientContext::AppendForwardResult(DataType type, Dims dims) {
  const ValueId saved = NewValue(type, std::move(dims));
  network_.values[saved].name = absl::StrCat("saved by ", forward_.name);
  forward().more_dsts.push_back(saved);
  return saved;
}

ValueId GradientContext::AppendLiteral(ConstantPtr constant) {
  const Dims dims = constant->dims;
  const DataType type = constant->is_float ? DataType::kF32 : DataType::kS64;
  const ValueId literal = Append(Literal{std::move(constant)}, {}, dims);
  network_.values[literal].type = type;
  return literal;
}

ValueId GradientContext::Compute(Function function, const std::vector<ValueId>& srcs) {
  Dims dims = {1};
  for (ValueId src : srcs) {
    std::optional<Dims> both = Broadcast(dims, this->dims(src));
    TILEWIRE_CHECK(both.has_value(), "a row combines values that are broadcast to each other");
    dims = *std::move(both);
  }
  return Append(Elementwise{function}, srcs, dims);
}

ValueId GradientContext::Scale(ValueId value, float factor, float shift) {
  return Append(Activation{{EltwiseAlgorithm::kLinear, factor, shift}}, {value}, dims(value));
}

ValueId GradientContext::Zero() { return AppendLiteral(MakeFloats("zero", {1}, {0.0f})); }

ValueId GradientContext::SumTo(ValueId value, const Dims& dims) {
  const Dims whole = this->dims(value);
  Dims reduced(whole.size() - dims.size(), 1);
  reduced.insert(reduced.end(), dims.begin(), dims.end());
  if (reduced != whole) value = Append(Reduce{Reduce::Function::kSum}, {value}, reduced);
  return reduced == dims ? value : Append(Reshape{}, {value}, dims);
}

ValueId GradientContext::Repeat(ValueId value, const Dims& dims) {
  Select repeated{.from = std::vector<std::vector<IndexRun>>(dims.size())};
  const Dims before = this->dims(value);
  if (before == dims) return value;
  for (size_t d = 0; d < dims.size(); ++d) {
    if (before[d] != dims[d]) repeated.from[d] = {{.start = 0, .step = 0, .count = dims[d]}};
  }
  return Append(std::move(repeated), {value}, dims);
}

void GradientContext::Add(size_t i, ValueId gradient) {
  const ValueId src = forward_.srcs[i];
  if (static_cast<size_t>(gradient) >= first_value_) {
    network_.values[gradient].name =
        absl::StrCat("gradient of ", network_.values[src].name, " by ", forward_.name);
  }
  contributions_[src].push_back(gradient);
}

}  // namespace tilewire::network
