// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/network/training/gradients/gradients.h"

namespace tilewire::network {
namespace {

absl::Status AppendGradientOfOne(const functions::EltwiseOp& op, GradientContext& context) {
  const functions::FunctionRow& row = functions::RowOf(op.function);
  if (!functions::HasSlope(op.function))
    return Unimplemented(row.name, " has no derivative: ", row.no_slope);
  const bool from_result = functions::HasResultSlope(op);
  const ValueId saved = from_result ? context.dst() : context.src();
  context.Add(0, context.Append(ActivationGradient{op, from_result}, {context.gradient(), saved},
                                context.dims(context.src())));
  return absl::OkStatus();
}

// Adds `gradient`, of the result's dims, to that of source i, which may have been broadcast.
void AddBroadcast(size_t i, ValueId gradient, GradientContext& context) {
  context.Add(i, context.SumTo(gradient, context.dims(context.src(i))));
}

void AppendGradientsOfProduct(GradientContext& context) {
  for (size_t i : {0, 1}) {
    if (!context.Wants(i)) continue;
    AddBroadcast(i, context.Compute(Function::kMul, {context.gradient(), context.src(1 - i)}),
                 context);
  }
}

void AppendGradientsOfQuotient(GradientContext& context) {
  const ValueId dy = context.gradient(), divisor = context.src(1);
  const ValueId by_first = context.Compute(Function::kDiv, {dy, divisor});
  if (context.Wants(0)) AddBroadcast(0, by_first, context);
  if (!context.Wants(1)) return;
  const ValueId product = context.Compute(Function::kMul, {by_first, context.dst()});
  AddBroadcast(1, context.Scale(product, -1), context);
}

// The one that is taken has the gradient; equals have half of it each.
void AppendGradientsOfExtreme(bool is_maximum, GradientContext& context) {
  const ValueId equal = context.Compute(Function::kEqual, {context.src(0), context.src(1)});
  const ValueId half = context.Scale(equal, 0.5f);
  for (size_t i : {0, 1}) {
    if (!context.Wants(i)) continue;
    const ValueId own = context.src(i), other = context.src(1 - i);
    const ValueId taken = is_maximum ? context.Compute(Function::kLess, {other, own})
                                     : context.Compute(Function::kLess, {own, other});
    const ValueId share = context.Compute(Function::kAdd, {taken, half});
    AddBroadcast(i, context.Compute(Function::kMul, {context.gradient(), share}), context);
  }
}

void AppendGradientsOfPRelu(GradientContext& context) {
  const ValueId dy = context.gradient(), x = context.src(0), slope = context.src(1);
  const ValueId zero = context.Zero();
  if (context.Wants(0)) {
    const ValueId is_positive = context.Compute(Function::kLess, {zero, x});
    const ValueId sloped = context.Compute(Function::kMul, {dy, slope});
    AddBroadcast(0, context.Compute(Function::kWhere, {is_positive, dy, sloped}), context);
  }
  if (!context.Wants(1)) return;
  const ValueId negative = context.Compute(Function::kMin, {x, zero});
  AddBroadcast(1, context.Compute(Function::kMul, {dy, negative}), context);
}

// dy * y * x^(y - 1)
absl::Status AppendGradientsOfPower(GradientContext& context) {
  if (context.Wants(1)) return Unimplemented("a power has no gradient by its exponent here");
  const ValueId x = context.src(0), y = context.src(1);
  const ValueId power = context.Compute(Function::kPower, {x, context.Scale(y, 1, -1)});
  const ValueId slope = context.Compute(Function::kMul, {power, y});
  AddBroadcast(0, context.Compute(Function::kMul, {context.gradient(), slope}), context);
  return absl::OkStatus();
}

void AppendGradientsOfChoice(GradientContext& context) {
  const ValueId condition = context.src(0), dy = context.gradient(), zero = context.Zero();
  if (context.Wants(1))
    AddBroadcast(1, context.Compute(Function::kWhere, {condition, dy, zero}), context);
  if (context.Wants(2))
    AddBroadcast(2, context.Compute(Function::kWhere, {condition, zero, dy}), context);
}

}  // namespace

absl::Status AppendGradients(const Activation& activation, GradientContext& context) {
  return AppendGradientOfOne(activation.op, context);
}

absl::Status AppendGradients(const Elementwise& elementwise, GradientContext& context) {
  const ValueId dy = context.gradient();
  switch (elementwise.function) {
    case Function::kAdd:
    case Function::kSub:
      if (context.Wants(0)) AddBroadcast(0, dy, context);
      if (!context.Wants(1)) break;
      AddBroadcast(1, elementwise.function == Function::kAdd ? dy : context.Scale(dy, -1), context);
      break;
    case Function::kMul:
      AppendGradientsOfProduct(context);
      break;
    case Function::kDiv:
      AppendGradientsOfQuotient(context);
      break;
    case Function::kMax:
    case Function::kMin:
      AppendGradientsOfExtreme(elementwise.function == Function::kMax, context);
      break;
    case Function::kPRelu:
      AppendGradientsOfPRelu(context);
      break;
    case Function::kPower:
      return AppendGradientsOfPower(context);
    case Function::kWhere:
      AppendGradientsOfChoice(context);
      break;
    default:
      if (functions::IsOfOneReal(elementwise.function))
        return AppendGradientOfOne(elementwise, context);
      return Unimplemented(functions::AlgorithmName(elementwise.function), " has no gradient");
  }
  return absl::OkStatus();
}

absl::Status AppendGradients(const Sum&, GradientContext& context) {
  for (size_t i = 0; i < context.src_count(); ++i) {
    if (context.Wants(i)) context.Add(i, context.gradient());
  }
  return absl::OkStatus();
}

}  // namespace tilewire::network
