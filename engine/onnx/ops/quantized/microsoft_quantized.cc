// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX Runtime's quantisers write beside ONNX's own operators: real numbers between
// a DequantizeLinear and a QuantizeLinear, which passes fold into operations on integers where they
// can. Zero points must be there, as they always are in such files: they tell the type. Source:
// ONNX Runtime's ContribOperators.md, version 1 of com.microsoft.
#include <climits>

#include "absl/strings/str_cat.h"
#include "absl/strings/substitute.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

constexpr char kWindow[] = "auto_pad ceil_mode count_include_pad kernel_shape pads strides";

// y = quantize($0 of the real numbers a and b)
std::string OfTwo(absl::string_view op) {
  return absl::Substitute(
      "A, a_scale, a_zero, B, b_scale, b_zero, y_scale, y_zero -> y:"
      "a = DequantizeLinear(A, a_scale, a_zero);"
      "b = DequantizeLinear(B, b_scale, b_zero);"
      "real = $0(a, b);"
      "y = QuantizeLinear(real, y_scale, y_zero)",
      op);
}

// y = quantize($0 of the real numbers x)
std::string OfOne(absl::string_view statements) {
  return absl::Substitute(
      "X, x_scale, x_zero, y_scale, y_zero -> y:"
      "x = DequantizeLinear(X, x_scale, x_zero);"
      "$0;"
      "y = QuantizeLinear(real, y_scale, y_zero)",
      statements);
}

absl::StatusOr<std::string> ComposeQLinearAdd(const Node&) { return OfTwo("Add"); }
absl::StatusOr<std::string> ComposeQLinearMul(const Node&) { return OfTwo("Mul"); }
absl::StatusOr<std::string> ComposeQLinearSigmoid(const Node&) {
  return OfOne("real = Sigmoid(x)");
}
absl::StatusOr<std::string> ComposeQLinearLeakyRelu(const Node&) {
  return OfOne("real = LeakyRelu(x, alpha=@alpha)");
}

// kUnimplemented: the channels come last.
absl::Status CheckChannelsFirst(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t last, node.Int("channels_last", 0));
  if (last == 0) return absl::OkStatus();
  return node.Unimplemented("channels_last ", last, "; supported is 0");
}

absl::StatusOr<std::string> ComposeQLinearAveragePool(const Node& node) {
  ABSL_RETURN_IF_ERROR(CheckChannelsFirst(node));
  return OfOne(absl::StrCat("real = AveragePool(x, ", PassedOn(kWindow), ")"));
}
absl::StatusOr<std::string> ComposeQLinearGlobalAveragePool(const Node& node) {
  ABSL_RETURN_IF_ERROR(CheckChannelsFirst(node));
  return OfOne("real = GlobalAveragePool(x)");
}

// Before opset 13, which the attribute `opset` tells, softmax was of the rows of a matrix.
absl::StatusOr<std::string> ComposeQLinearSoftmax(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t opset, node.Int("opset", 13));
  if (opset >= 13) {
    const bool given = node.HasAttribute("axis");
    return OfOne(absl::StrCat("real = Softmax(x, axis=", given ? "@axis" : "-1", ")"));
  }
  return OfOne(
      "rows = Flatten(x, axis=@axis); soft = Softmax(rows, axis=1);"
      "dims = Shape(x); real = Reshape(soft, dims)");
}

absl::StatusOr<std::string> ComposeQLinearConcat(const Node& node) {
  const size_t count = node.inputs.size();
  if (count < 5 || (count - 2) % 3 != 0)
    return node.Invalid(count,
                        " inputs, which are not a scale, a zero point and tensors with theirs");
  std::string inputs = "y_scale, y_zero", statements, parts;
  for (size_t i = 0; i < (count - 2) / 3; ++i) {
    absl::SubstituteAndAppend(&inputs, ", X$0, scale$0, zero$0", i);
    absl::SubstituteAndAppend(&statements, "x$0 = DequantizeLinear(X$0, scale$0, zero$0);", i);
    absl::StrAppend(&parts, "x", i, ", ");
  }
  return absl::StrCat(inputs, " -> y:", statements, "real = Concat(", parts,
                      "axis=@axis); y = QuantizeLinear(real, y_scale, y_zero)");
}

// C counts products of a step of A and one of B, times alpha; without a scale, Y is real numbers.
absl::StatusOr<std::string> ComposeQGemm(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const int64_t transposed, node.Int("transB", 0));
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1));
  if (node.HasInput(7) != node.HasInput(8))
    return node.Invalid("the scale or the zero point of Y is missing");
  const bool adds = node.HasInput(6);
  std::string text = absl::StrCat(
      "A, a_scale, a_zero, B, b_scale, b_zero, C, y_scale, y_zero -> y:"
      "a = DequantizeLinear(A, a_scale, a_zero);"
      "b = DequantizeLinear(B, b_scale, b_zero, axis=",
      transposed != 0 ? 0 : 1, ");");
  if (adds) {
    absl::StrAppend(&text, "product = Mul(a_scale, b_scale);", ConstantText("alpha", alpha),
                    "step = Mul(product, alpha); c = DequantizeLinear(C, step, _, axis=-1);");
  }
  const bool quantizes = node.HasInput(7);
  absl::StrAppend(&text, quantizes ? "real" : "y", " = Gemm(a, b, ", adds ? "c" : "_",
                  ", alpha=@alpha, transA=@transA, transB=@transB)");
  if (quantizes) absl::StrAppend(&text, "; y = QuantizeLinear(real, y_scale, y_zero)");
  return text;
}

// Integers times integers, as real numbers; B's scales may be of its columns.
absl::StatusOr<std::string> ComposeMatMulIntegerToFloat(const Node& node) {
  const bool adds = node.HasInput(6);
  return absl::StrCat(
      "A, B, a_scale, b_scale, a_zero, b_zero, bias -> y:"
      "a = DequantizeLinear(A, a_scale, a_zero);"
      "b = DequantizeLinear(B, b_scale, b_zero, axis=-1);",
      adds ? "product = MatMul(a, b); y = Add(product, bias)" : "y = MatMul(a, b)");
}

// A is quantized by its smallest and largest element.
absl::StatusOr<std::string> ComposeDynamicQuantizeMatMul(const Node& node) {
  const bool adds = node.HasInput(4);
  return absl::StrCat(
      "A, B, b_scale, b_zero, bias -> y:"
      "integers, a_scale, a_zero = DynamicQuantizeLinear(A);"
      "sums = MatMulInteger(integers, B, a_zero, b_zero);"
      "numbers = Cast(sums, to=1); step = Mul(a_scale, b_scale);",
      adds ? "product = Mul(numbers, step); y = Add(product, bias)" : "y = Mul(numbers, step)");
}

constexpr char kOfAttention[] =
    "do_rotary mask_filter_value num_heads past_present_share_buffer scale unidirectional";

// The weights' scales may be of their columns.
absl::StatusOr<std::string> ComposeQAttention(const Node&) {
  return absl::StrCat(
      "X, W, bias, x_scale, w_scale, mask, x_zero, w_zero, past -> y, present:"
      "x = DequantizeLinear(X, x_scale, x_zero);"
      "w = DequantizeLinear(W, w_scale, w_zero, axis=1);"
      "y, present = com.microsoft.Attention(x, w, bias, mask, past, ",
      PassedOn(kOfAttention), ")");
}

absl::StatusOr<std::string> ComposeDequantize(const Node&) {
  return std::string("x, scale, zero -> y: y = DequantizeLinear(x, scale, zero, axis=@axis)");
}
absl::StatusOr<std::string> ComposeQuantize(const Node&) {
  return std::string("x, scale, zero -> y: y = QuantizeLinear(x, scale, zero, axis=@axis)");
}
absl::StatusOr<std::string> ComposeQLinearConv(const Node& node) {
  ABSL_RETURN_IF_ERROR(CheckChannelsFirst(node));
  return absl::StrCat(
      "x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias -> y:"
      "y = QLinearConv(x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias, ",
      PassedOn("auto_pad dilations group kernel_shape pads strides"), ")");
}

}  // namespace

TILEWIRE_OPERATORS(MicrosoftQuantized) = {
    Composed("com.microsoft.DequantizeLinear", 1, 2, 3, "axis", ComposeDequantize),
    Composed("com.microsoft.DynamicQuantizeMatMul", 1, 3, 5, "", ComposeDynamicQuantizeMatMul),
    Composed("com.microsoft.MatMulIntegerToFloat", 1, 4, 7, "", ComposeMatMulIntegerToFloat),
    Composed("com.microsoft.QAttention", 1, 5, 9, kOfAttention, ComposeQAttention),
    Composed("com.microsoft.QGemm", 1, 6, 9, "alpha transA transB", ComposeQGemm),
    Composed("com.microsoft.QLinearAdd", 1, 8, 8, "", ComposeQLinearAdd),
    Composed("com.microsoft.QLinearAveragePool", 1, 5, 5,
             "auto_pad ceil_mode channels_last count_include_pad kernel_shape pads strides",
             ComposeQLinearAveragePool),
    Composed("com.microsoft.QLinearConcat", 1, 5, INT_MAX, "axis", ComposeQLinearConcat),
    Composed("com.microsoft.QLinearConv", 1, 8, 9,
             "auto_pad channels_last dilations group kernel_shape pads strides",
             ComposeQLinearConv),
    Composed("com.microsoft.QLinearGlobalAveragePool", 1, 5, 5, "channels_last",
             ComposeQLinearGlobalAveragePool),
    Composed("com.microsoft.QLinearLeakyRelu", 1, 5, 5, "alpha", ComposeQLinearLeakyRelu),
    Composed("com.microsoft.QLinearMul", 1, 8, 8, "", ComposeQLinearMul),
    Composed("com.microsoft.QLinearSigmoid", 1, 5, 5, "", ComposeQLinearSigmoid),
    Composed("com.microsoft.QLinearSoftmax", 1, 5, 5, "axis opset", ComposeQLinearSoftmax),
    Composed("com.microsoft.QuantizeLinear", 1, 2, 3, "axis", ComposeQuantize),
};

}  // namespace tilewire::reader
