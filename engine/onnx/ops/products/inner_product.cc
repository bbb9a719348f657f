// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/products/inner_product.h"

#include <numeric>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/products/matmul.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/weights.h"

namespace tilewire::reader {
namespace {

struct MatrixWeights {
  network::Weights weights;  // dims [O, I]
  int64_t inputs = 0, outputs = 0;
};

// A matrix as weights; `as_given` is [O, I], else [I, O].
absl::StatusOr<MatrixWeights> ReadMatrix(const NodeContext& context, const ConstantPtr& matrix,
                                         bool as_given) {
  if (matrix->dims.size() != 2) {
    return context.node.Invalid("a right side of dims ", DimsToString(matrix->dims));
  }
  MatrixWeights result{WeightsOf(matrix, /*output_axis=*/as_given ? 0 : 1),
                       matrix->dims[as_given ? 1 : 0], matrix->dims[as_given ? 0 : 1]};
  result.weights.dims = {result.outputs, result.inputs};
  result.weights.transposed = !as_given;
  if (!as_given) result.weights.key += "^T";
  if (result.inputs < 1 || result.outputs < 1)
    return context.node.Invalid("a right side without elements");
  return result;
}

// Gemm's C times beta as a bias: [O], [1, O], or one element for all; nullopt for another C.
absl::StatusOr<std::optional<std::vector<float>>> ReadGemmBias(const NodeContext& context,
                                                               int64_t outputs, float beta) {
  const Operand& given = context.input(2);
  const Dims& dims = given.dims;
  const bool row = dims == Dims{outputs} || dims == Dims{1, outputs};
  const bool one = dims.size() <= 2 && ElementCount(dims) == 1;
  if (given.constant == nullptr || (!row && !one)) return std::nullopt;
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr c, context.Floats(2));
  std::vector<float> bias(outputs);
  for (int64_t o = 0; o < outputs; ++o) bias[o] = beta * c->floats[one ? 0 : o];
  return bias;
}

}  // namespace

// dst = product + beta * C, with C broadcast.
absl::Status AddC(NodeContext& context, const Operand& product, float beta) {
  Operand c = context.input(2);
  if (beta != 1) {
    const Operand factor = context.KnownFloat("/beta", beta);
    ABSL_ASSIGN_OR_RETURN(c, ElementwiseOf(context, {Function::kMul}, {c, factor}, "/c"));
  }
  return context.SetOutput(ElementwiseOf(context, {Function::kAdd}, {product, c}));
}

namespace {

absl::Status BuildGemm(NodeContext& context) {
  const Node& node = context.node;
  if (context.input(1).constant == nullptr || TypeOfProduct(context) != DataType::kF32)
    return BuildComputedGemm(context);
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const float beta, node.Float("beta", 1.0f));
  ABSL_ASSIGN_OR_RETURN(const int64_t transposed_a, node.Int("transA", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t transposed_b, node.Int("transB", 0));
  ABSL_ASSIGN_OR_RETURN(ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr b, context.FloatsInPlace(1));
  ABSL_ASSIGN_OR_RETURN(MatrixWeights matrix, ReadMatrix(context, b, transposed_b != 0));
  Dims src_dims = context.input(0).dims;
  if (transposed_a != 0 && src_dims.size() == 2) {
    std::swap(src_dims[0], src_dims[1]);
    ABSL_ASSIGN_OR_RETURN(src, context.Emit(network::Transpose{{1, 0}}, {src}, src_dims, "/a"));
  }
  if (src_dims.size() != 2 || src_dims[1] != matrix.inputs) {
    return node.Invalid("A ", DimsToString(src_dims), " does not fit B of ", matrix.inputs,
                        " inputs");
  }
  network::InnerProduct product;
  bool adds = false;
  if (context.Has(2)) {
    ABSL_ASSIGN_OR_RETURN(auto bias, ReadGemmBias(context, matrix.outputs, beta));
    adds = !bias;
    if (bias) product.bias = *std::move(bias);
  }
  if (alpha != 1) {
    matrix.weights.scale.resize(matrix.outputs, 1);
    for (float& scale : matrix.weights.scale) scale *= alpha;
    absl::StrAppend(&matrix.weights.key, "*", context.output_name());
  }
  const Dims dims = {src_dims[0], matrix.outputs};
  product.weights = std::move(matrix.weights);
  if (!adds) return context.SetOutput(context.Emit(std::move(product), {src}, dims));
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(std::move(product), {src}, dims, "/product"));
  return AddC(context, {nullptr, result, dims}, beta);
}

}  // namespace

// All dimensions but the last are rows.
absl::StatusOr<ValueId> EmitMatMul(NodeContext& context, ValueId src, const ConstantPtr& right,
                                   absl::string_view suffix, bool turned) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(MatrixWeights matrix, ReadMatrix(context, right, /*as_given=*/turned));
  Dims dims = context.value(src).dims;
  if (dims.size() < 2 || dims.back() != matrix.inputs) {
    return node.Invalid("A ", DimsToString(dims), " does not fit B of ", matrix.inputs, " inputs");
  }
  const int64_t rows = *CheckedProduct(absl::MakeSpan(dims).first(dims.size() - 1));
  ABSL_ASSIGN_OR_RETURN(const ValueId flat,
                        context.EmitReshape(src, {rows, matrix.inputs}, "/rows"));
  network::InnerProduct product;
  product.weights = std::move(matrix.weights);
  dims.back() = matrix.outputs;
  const bool is_matrix = dims.size() == 2;
  const std::string name = absl::StrCat(suffix, is_matrix ? "" : "/product");
  ABSL_ASSIGN_OR_RETURN(const ValueId result,
                        context.Emit(std::move(product), {flat}, {rows, matrix.outputs}, name));
  return context.EmitReshape(result, std::move(dims), suffix);
}

namespace {

absl::Status BuildMatMul(NodeContext& context) {
  const Operand& right = context.input(1);
  const bool is_known_matrix = right.constant != nullptr && right.dims.size() == 2;
  if (!is_known_matrix || context.input(0).dims.size() < 2 ||
      TypeOfProduct(context) != DataType::kF32) {
    return BuildComputedMatMul(context);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const ConstantPtr matrix, context.FloatsInPlace(1));
  return context.SetOutput(EmitMatMul(context, src, matrix));
}

// alpha * A * B, where the last two dimensions of either may be exchanged.
absl::Status BuildFusedMatMul(NodeContext& context) {
  const Node& node = context.node;
  Operand sides[2];
  for (int i = 0; i < 2; ++i) {
    sides[i] = context.input(i);
    const std::string letter = i == 0 ? "A" : "B";
    ABSL_ASSIGN_OR_RETURN(const int64_t batch, node.Int(absl::StrCat("transBatch", letter), 0));
    ABSL_ASSIGN_OR_RETURN(const int64_t turned, node.Int(absl::StrCat("trans", letter), 0));
    if (batch != 0) return node.Unimplemented("transBatch", letter);
    if (turned == 0 || sides[i].dims.size() < 2) continue;
    std::vector<int> order(sides[i].dims.size());
    std::iota(order.begin(), order.end(), 0);
    std::swap(order[order.size() - 2], order.back());
    ABSL_ASSIGN_OR_RETURN(sides[i], TurnedOf(context, sides[i], order, absl::StrCat("/", letter)));
  }
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1.0f));
  const absl::string_view suffix = alpha == 1 ? "" : "/product";
  Operand product;
  if (sides[1].constant != nullptr && sides[1].dims.size() == 2 && sides[0].dims.size() >= 2) {
    ABSL_ASSIGN_OR_RETURN(const ConstantPtr matrix, context.FloatsInPlace(1));
    ABSL_ASSIGN_OR_RETURN(const ValueId src, context.AsValue(sides[0]));
    ABSL_ASSIGN_OR_RETURN(product.value, EmitMatMul(context, src, matrix, suffix));
    product.dims = context.value(product.value).dims;
  } else {
    ABSL_ASSIGN_OR_RETURN(product, MatMulOf(context, sides[0], sides[1], suffix));
  }
  if (alpha != 1) {
    ABSL_ASSIGN_OR_RETURN(product, LinearOf(context, product, alpha, 0));
  }
  return context.SetOutput(product);
}

}  // namespace

TILEWIRE_OPERATORS(InnerProduct) = {
    TrainsEvery({"com.microsoft.FusedMatMul", 1, 2, 2,
                 "alpha transA transB transBatchA transBatchB", BuildFusedMatMul}),
    TrainsEvery({"Gemm", 1, 2, 3, "alpha beta broadcast transA transB", BuildGemm}),
    TrainsEvery({"MatMul", 1, 2, 2, "", BuildMatMul}),
};

}  // namespace tilewire::reader
