// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

// Appends the gradients by scale and shift, sources 1 and 2, to the results of the last operation.
void AddByParameters(GradientContext& context) {
  for (size_t i : {1, 2}) {
    const ValueId by_parameter = context.AppendResult(context.dims(context.src(i)));
    if (context.Wants(i)) context.Add(i, by_parameter);
  }
}

struct Statistics {
  ValueId mean, variance;
};

// Mean and variance of the rows, which are saved from now on.
Statistics StatisticsOf(const LayerNormalization& norm, GradientContext& context) {
  if (norm.saves_statistics) return {context.more_dst(0), context.more_dst(1)};
  std::get<LayerNormalization>(context.forward().params).saves_statistics = true;
  Dims rows = context.dims(context.src());
  rows.pop_back();
  const ValueId mean = context.AppendForwardResult(DataType::kF32, rows);
  return {mean, context.AppendForwardResult(DataType::kF32, rows)};
}

}  // namespace

// As of BatchNormalization, below.
absl::Status AppendGradients(const LayerNormalization& norm, GradientContext& context) {
  const Statistics statistics = StatisticsOf(norm, context);
  const Dims dims = context.dims(context.src());
  std::vector<ValueId> srcs = {context.gradient(), context.src(), statistics.mean,
                               statistics.variance};
  LayerNormalizationGradient gradient{.epsilon = norm.epsilon};
  if (norm.reads_parameters) {
    gradient.scales = true;
    gradient.by_parameters = context.Wants(1) || context.Wants(2);
    srcs.push_back(context.src(1));
  } else if (!norm.scale.empty()) {
    gradient.scales = true;
    srcs.push_back(context.AppendLiteral(MakeFloats("scale", {dims.back()}, norm.scale)));
  }
  const ValueId by_src = context.Append(gradient, std::move(srcs), dims);
  if (gradient.by_parameters) AddByParameters(context);
  if (context.Wants(0)) context.Add(0, by_src);
  return absl::OkStatus();
}

namespace {

// The value of what the relu of a normalization lets through, which is saved from now on.
ValueId PassedBy(const BatchNormalization& norm, GradientContext& context) {
  if (norm.saves_passed) return context.more_dst(2);
  std::get<BatchNormalization>(context.forward().params).saves_passed = true;
  return context.AppendForwardResult(DataType::kU8, context.dims(context.src()));
}

}  // namespace

// The parameters' gradients are sums that the gradient of src takes anyway.
absl::Status AppendGradients(const BatchNormalization& norm, GradientContext& context) {
  const bool given = norm.uses_given_statistics;
  const ValueId mean = given ? context.src(3) : context.more_dst(0);
  const ValueId variance = given ? context.src(4) : context.more_dst(1);
  if (given && (context.Wants(3) || context.Wants(4)))
    return absl::UnimplementedError("statistics that are given have no gradients");
  const bool by_parameters = context.Wants(1) || context.Wants(2);
  constexpr size_t kAddend = 3;  // only where statistics are not given (network_check.cc)
  const bool by_addend = norm.adds && context.Wants(kAddend);
  BatchNormalizationGradient gradient{norm, by_parameters, by_addend && norm.relu};
  std::vector<ValueId> srcs = {context.gradient(), context.src(0), context.src(1), mean, variance};
  if (norm.relu) srcs.push_back(PassedBy(norm, context));
  gradient.forward.saves_passed = norm.relu;
  const Dims dims = context.dims(context.src());
  const ValueId by_src = context.Append(gradient, std::move(srcs), dims);
  if (by_parameters) AddByParameters(context);
  if (by_addend) context.Add(kAddend, norm.relu ? context.AppendResult(dims) : context.gradient());
  if (context.Wants(0)) context.Add(0, by_src);
  return absl::OkStatus();
}

}  // namespace tilewire::network
