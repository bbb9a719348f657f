// SPDX-License-Identifier: Apache-2.0
#include <utility>
#include <variant>
#include <vector>

#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {

// With g = dy * scale, r = 1 / sqrt(variance + epsilon), xh = (x - mean) * r, and means over a row:
//   (g - mean(g) - xh * mean(g * xh)) * r
absl::Status AppendGradients(const LayerNormalization& norm, GradientContext& context) {
  const auto of = [&context](Function function, std::vector<ValueId> srcs) {
    return context.Compute(function, srcs);
  };
  Dims rows = context.dims(context.src());
  const Dims row = {rows.back()};
  rows.back() = 1;
  const auto mean = [&](ValueId value) {
    return context.Append(Reduce{Reduce::Function::kMean}, {value}, rows);
  };
  const ValueId x = context.src(), centred = of(Function::kSub, {x, mean(x)});
  const ValueId variance = mean(of(Function::kMul, {centred, centred}));
  const ValueId root = of(Function::kSquareRoot, {context.Scale(variance, 1, norm.epsilon)});
  const ValueId normal = of(Function::kDiv, {centred, root});
  ValueId gradient = context.gradient();
  if (!norm.scale.empty()) {
    const ValueId scale = context.AppendLiteral(MakeFloats("scale", row, norm.scale));
    gradient = of(Function::kMul, {gradient, scale});
  }
  const ValueId level = of(Function::kSub, {gradient, mean(gradient)});
  const ValueId share = mean(of(Function::kMul, {gradient, normal}));
  const ValueId rest = of(Function::kSub, {level, of(Function::kMul, {normal, share})});
  context.Add(0, of(Function::kDiv, {rest, root}));
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
  for (size_t i : {1, 2}) {
    if (!by_parameters) break;
    const ValueId by_parameter = context.AppendResult(context.dims(context.src(i)));
    if (context.Wants(i)) context.Add(i, by_parameter);
  }
  if (by_addend) context.Add(kAddend, norm.relu ? context.AppendResult(dims) : context.gradient());
  if (context.Wants(0)) context.Add(0, by_src);
  return absl::OkStatus();
}

}  // namespace tilewire::network
