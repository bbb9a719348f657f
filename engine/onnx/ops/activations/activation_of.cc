// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/activations/activation_of.h"

#include <cmath>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/node_context.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"

namespace tilewire::reader {
namespace {

using Algorithm = EltwiseAlgorithm;

// Operations one after the other. Once one is refused, the rest do nothing.
class Chain {
 public:
  Chain(NodeContext& context, absl::string_view suffix) : context_(context), suffix_(suffix) {}

  Operand Of(const Elementwise& function, const std::vector<Operand>& operands) {
    if (!status_.ok()) return {};
    absl::StatusOr<Operand> result =
        ElementwiseOf(context_, function, operands, absl::StrCat(suffix_, "/step", steps_++));
    if (result.ok()) return *std::move(result);
    status_ = result.status();
    return {};
  }
  Operand Of(Function function, const std::vector<Operand>& operands) {
    return Of(Elementwise{function}, operands);
  }
  Operand Number(double number) {
    return OperandOf(network::MakeDoubles(
        absl::StrCat(context_.output_name(), suffix_, "/number", numbers_++), {}, {number}));
  }

  Operand Plus(const Operand& x, double y) { return Of(Function::kAdd, {x, Number(y)}); }
  Operand Times(const Operand& x, double y) { return Of(Function::kMul, {x, Number(y)}); }
  Operand Product(const Operand& x, const Operand& y) { return Of(Function::kMul, {x, y}); }
  Operand Bounded(const Operand& x, double low, double high) {
    return Of(Function::kMin, {Of(Function::kMax, {x, Number(low)}), Number(high)});
  }
  // 1 / (1 + e^-x)
  Operand Logistic(const Operand& x) {
    return Of(Function::kReciprocal, {Plus(Of(Function::kExp, {Of(Function::kNegate, {x})}), 1)});
  }
  // sign(x) * -e / (2 + e) of e = exp(-2 |x|) - 1
  Operand Tanh(const Operand& x) {
    const Operand e = Of(Elementwise{Function::kSelu, 1, 1}, {Times(Of(Function::kAbs, {x}), -2)});
    const Operand size = Of(Function::kDiv, {Of(Function::kNegate, {e}), Plus(e, 2)});
    return Product(size, Of(Function::kSign, {x}));
  }
  // max(x, 0) + log(1 + exp(-|x|))
  Operand SoftRelu(const Operand& x) {
    const Operand y = Of(Function::kExp, {Of(Function::kNegate, {Of(Function::kAbs, {x})})});
    const Operand half = Of(Function::kAtanh, {Of(Function::kDiv, {y, Plus(y, 2)})});
    return Of(Function::kAdd, {Of(Function::kMax, {x, Number(0)}), Times(half, 2)});
  }

  absl::Status status() const { return status_; }

 private:
  NodeContext& context_;
  const std::string suffix_;
  int steps_ = 0, numbers_ = 0;
  absl::Status status_;
};

Operand Gated(Chain& chain, const functions::EltwiseOp& op, const Operand& x) {
  switch (op.function) {
    case Algorithm::kHardSigmoid:
      return chain.Bounded(chain.Plus(chain.Times(x, op.alpha), op.beta), 0, 1);
    case Algorithm::kHardSwish:
      return chain.Product(x, chain.Bounded(chain.Plus(chain.Times(x, op.alpha), op.beta), 0, 1));
    case Algorithm::kSwish:
      return chain.Product(x, chain.Logistic(chain.Times(x, op.alpha)));
    case Algorithm::kMish:
      return chain.Product(x, chain.Tanh(chain.SoftRelu(x)));
    case Algorithm::kGelu: {  // x logistic(2 sqrt(2 / pi) (x + 0.044715 x^3))
      const Operand cube = chain.Times(chain.Product(x, chain.Product(x, x)), 0.044715);
      const Operand inner = chain.Of(Function::kAdd, {x, cube});
      return chain.Product(x, chain.Logistic(chain.Times(inner, 2 * std::sqrt(M_2_PI))));
    }
    default:
      TILEWIRE_CHECK(false, "an activation without a form for doubles");
      return x;
  }
}

Operand Applied(Chain& chain, const functions::EltwiseOp& op, const Operand& x) {
  switch (op.function) {
    case Algorithm::kRelu:
      return op.alpha == 0 ? chain.Of(Function::kMax, {x, chain.Number(0)})
                           : chain.Of(Function::kPRelu, {x, chain.Number(op.alpha)});
    case Algorithm::kTanh:
      return chain.Tanh(x);
    case Algorithm::kElu:
      return chain.Of(Elementwise{Function::kSelu, op.alpha, 1}, {x});
    case Algorithm::kSquare:
      return chain.Product(x, x);
    case Algorithm::kAbs:
    case Algorithm::kExp:
    case Algorithm::kGeluErf:
    case Algorithm::kLog:
    case Algorithm::kRound:
    case Algorithm::kFloor:
    case Algorithm::kCeil:
      return chain.Of(op, {x});
    case Algorithm::kSqrt:
      return chain.Of(Function::kSquareRoot, {x});
    case Algorithm::kLinear:
      if (op.alpha == -1 && op.beta == 0) return chain.Of(Function::kNegate, {x});
      return chain.Plus(chain.Times(x, op.alpha), op.beta);
    case Algorithm::kBoundedRelu:
      return chain.Bounded(x, 0, op.alpha);
    case Algorithm::kClip:
      return chain.Bounded(x, op.alpha, op.beta);
    case Algorithm::kSoftRelu:
      return chain.SoftRelu(x);
    case Algorithm::kLogistic:
      return chain.Logistic(x);
    case Algorithm::kPow: {
      const bool is_root = op.beta == 0.5f;
      const Operand power = is_root ? chain.Of(Function::kSquareRoot, {x})
                                    : chain.Of(Function::kPower, {x, chain.Number(op.beta)});
      return op.alpha == 1 ? power : chain.Times(power, op.alpha);
    }
    default:
      return Gated(chain, op, x);
  }
}

// An activation of f64, as operations on f64 that follow each other. `src` is a value or a constant
// of f64, and so is the result a value. Formulas keep their relative error near 0: e^x - 1 is a
// Selu's negative half, log(1 + y) is 2 artanh(y / (2 + y)).
absl::StatusOr<Operand> ActivationOfDoubles(NodeContext& context, const functions::EltwiseOp& op,
                                            const Operand& src, absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.InType(src, DataType::kF64));
  Chain chain(context, suffix);
  const Operand result = Applied(chain, op, {nullptr, value, src.dims});
  ABSL_RETURN_IF_ERROR(chain.status());
  return result;
}

// The function that computes an activation of integers.
//   kUnimplemented  nothing does
absl::StatusOr<Elementwise> FunctionOf(const NodeContext& context, const functions::EltwiseOp& op,
                                       DataType type) {
  if (op.function == Algorithm::kAbs) return op;
  if (op.function == Algorithm::kLinear && op.alpha == -1 && op.beta == 0)
    return Elementwise{Function::kNegate};
  return context.node.Unimplemented("takes ", DataTypeName(type), " here; supported is f32");
}

}  // namespace

absl::StatusOr<Operand> ActivationOf(NodeContext& context, functions::EltwiseOp op,
                                     const Operand& src, absl::string_view suffix) {
  const DataType own = context.TypeOf(src);
  if (own == DataType::kF64 || (src.constant != nullptr && src.constant->doubles != nullptr))
    return ActivationOfDoubles(context, op, src, suffix);
  if (own != DataType::kF32) {
    ABSL_ASSIGN_OR_RETURN(const Elementwise function, FunctionOf(context, op, own));
    return ElementwiseOf(context, function, {src}, suffix);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId value, context.AsValue(src));
  return context.EmitOperand(network::Activation{op}, {value}, src.dims, suffix);
}

absl::StatusOr<Operand> LinearOf(NodeContext& context, const Operand& src, float scale, float shift,
                                 absl::string_view suffix) {
  return ActivationOf(context, {EltwiseAlgorithm::kLinear, scale, shift}, src, suffix);
}

absl::Status FinishActivation(NodeContext& context, const functions::EltwiseOp& op) {
  return context.SetOutput(ActivationOf(context, op, context.input(0)));
}

}  // namespace tilewire::reader
