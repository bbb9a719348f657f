// SPDX-License-Identifier: Apache-2.0
//
// The operators MatMul and Gemm are in inner_product.cc, which calls these functions for products
// that no inner product computes.
#include "engine/onnx/ops/products/matmul.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/shapes/moves.h"

namespace tilewire::reader {
namespace {

absl::Status DoNotFit(const NodeContext& context, const Operand& a, const Operand& b) {
  return context.node.Invalid("A ", DimsToString(a.dims), " does not fit B ", DimsToString(b.dims));
}

// Prepends dimensions of 1 up to `rank`.
absl::StatusOr<Operand> Raised(NodeContext& context, const Operand& src, size_t rank,
                               absl::string_view suffix) {
  Dims dims(rank - src.dims.size(), 1);
  dims.insert(dims.end(), src.dims.begin(), src.dims.end());
  return ReshapeOf(context, src, std::move(dims), suffix);
}

// f32, or the type of their own that operands have, which the products are computed in.
DataType TypeOfFactors(const NodeContext& context, const Operand& a, const Operand& b) {
  for (const Operand* operand : {&a, &b}) {
    const DataType type = context.TypeOf(*operand);
    if (type != DataType::kF32 && !IsByte(type)) return type;
  }
  return DataType::kF32;
}

absl::StatusOr<ValueId> Factor(NodeContext& context, const Operand& operand, DataType type) {
  return type == DataType::kF32 ? context.AsValue(operand) : context.InType(operand, type);
}

// Two matrices, or stacks of matrices, of one rank, and the dims of their product.
struct Factors {
  Operand left, right;
  Dims dims;
};

// kInvalidArgument  operands of rank 0 or 1, or that do not fit each other
absl::StatusOr<Factors> FactorsOf(NodeContext& context, const Operand& a, const Operand& b) {
  if (a.dims.size() < 2 || b.dims.size() < 2) return DoNotFit(context, a, b);
  const size_t rank = std::max(a.dims.size(), b.dims.size());
  ABSL_ASSIGN_OR_RETURN(const Operand left, Raised(context, a, rank, "/left"));
  ABSL_ASSIGN_OR_RETURN(const Operand right, Raised(context, b, rank, "/right"));
  const std::optional<Dims> stack = network::Broadcast(
      Dims(left.dims.begin(), left.dims.end() - 2), Dims(right.dims.begin(), right.dims.end() - 2));
  if (!stack || left.dims[rank - 1] != right.dims[rank - 2]) return DoNotFit(context, a, b);
  Dims dims = *stack;
  dims.push_back(left.dims[rank - 2]);
  dims.push_back(right.dims[rank - 1]);
  return Factors{left, right, std::move(dims)};
}

// The product of such factors, in the type that both can have.
absl::StatusOr<Operand> ProductOf(NodeContext& context, const Operand& a, const Operand& b,
                                  absl::string_view suffix) {
  ABSL_ASSIGN_OR_RETURN(const Factors factors, FactorsOf(context, a, b));
  const DataType type = TypeOfFactors(context, a, b);
  ABSL_ASSIGN_OR_RETURN(const ValueId left_value, Factor(context, factors.left, type));
  ABSL_ASSIGN_OR_RETURN(const ValueId right_value, Factor(context, factors.right, type));
  return context.EmitOperand(network::Matmul{}, {left_value, right_value}, factors.dims, suffix,
                             type);
}

absl::StatusOr<Operand> TransposedIf(NodeContext& context, absl::string_view attribute, int input) {
  const Operand& src = context.input(input);
  ABSL_ASSIGN_OR_RETURN(const int64_t transposed, context.node.Int(attribute, 0));
  if (src.dims.size() != 2) return DoNotFit(context, context.input(0), context.input(1));
  if (transposed == 0) return src;
  const Dims dims = {src.dims[1], src.dims[0]};
  ABSL_ASSIGN_OR_RETURN(const ValueId value, Factor(context, src, TypeOfProduct(context)));
  return context.EmitOperand(network::Transpose{{1, 0}}, {value}, dims,
                             absl::StrCat("/", attribute));
}

}  // namespace

DataType TypeOfProduct(const NodeContext& context) {
  return TypeOfFactors(context, context.input(0), context.input(1));
}

absl::StatusOr<Operand> MatMulOf(NodeContext& context, const Operand& left, const Operand& right,
                                 absl::string_view suffix) {
  if (left.dims.empty() || right.dims.empty()) return DoNotFit(context, left, right);
  Operand a = left, b = right;
  const bool row = a.dims.size() == 1, column = b.dims.size() == 1;
  if (row) {
    ABSL_ASSIGN_OR_RETURN(a, ReshapeOf(context, a, {1, a.dims[0]}, "/row"));
  }
  if (column) {
    ABSL_ASSIGN_OR_RETURN(b, ReshapeOf(context, b, {b.dims[0], 1}, "/column"));
  }
  const std::string name = absl::StrCat(suffix, row || column ? "/product" : "");
  ABSL_ASSIGN_OR_RETURN(const Operand product, ProductOf(context, a, b, name));
  Dims dims = product.dims;
  if (column) dims.pop_back();
  if (row) dims.erase(dims.end() - (column ? 1 : 2));
  return ReshapeOf(context, product, std::move(dims), suffix);
}

absl::StatusOr<Operand> IntegerSumsOf(NodeContext& context, const Operand& a, const Operand& b,
                                      const network::IntegerMatmul& product) {
  ABSL_ASSIGN_OR_RETURN(const Factors factors, FactorsOf(context, a, b));
  return context.EmitOperand(product, {factors.left.value, factors.right.value}, factors.dims, "",
                             DataType::kS32);
}

absl::Status BuildComputedMatMul(NodeContext& context) {
  const bool of_integers = IsIntegerType(TypeOfProduct(context));
  for (int i = 0; i < 2; ++i) {
    const ConstantPtr& known = context.input(i).constant;
    if (known != nullptr && known->is_float == of_integers) {
      return context.node.Invalid("input ", i, of_integers ? " is" : " is not", " floating-point");
    }
  }
  return context.SetOutput(MatMulOf(context, context.input(0), context.input(1)));
}

absl::Status BuildComputedGemm(NodeContext& context) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, context.node.Float("alpha", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const float beta, context.node.Float("beta", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const Operand a, TransposedIf(context, "transA", 0));
  ABSL_ASSIGN_OR_RETURN(const Operand b, TransposedIf(context, "transB", 1));
  if (IsIntegerType(TypeOfProduct(context)) && (alpha != 1 || beta != 1))
    return context.node.Unimplemented("alpha or beta other than 1, of integers");
  const bool adds = context.Has(2);
  ABSL_ASSIGN_OR_RETURN(Operand dst,
                        ProductOf(context, a, b, alpha != 1 || adds ? "/product" : ""));
  if (alpha != 1) {
    ABSL_ASSIGN_OR_RETURN(dst, LinearOf(context, dst, alpha, 0, adds ? "/alpha" : ""));
  }
  return adds ? AddC(context, dst, beta) : context.SetOutput(dst);
}

}  // namespace tilewire::reader
