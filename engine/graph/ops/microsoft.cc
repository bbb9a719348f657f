// SPDX-License-Identifier: Apache-2.0
//
// What ONNX Runtime's optimiser writes in the place of several of ONNX's operators, and is taken
// apart again here: passes then fuse what this engine fuses. Source: ONNX Runtime's
// ContribOperators.md, version 1 of com.microsoft.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/composition.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

// `number` as an attribute of a composition.
std::string Number(float number) { return absl::StrFormat("%.9e", number); }

// The statement "y = activation(x)" for the attributes of FusedConv and FusedGemm.
//   kInvalidArgument  too few numbers
//   kUnimplemented    an activation by another name
absl::StatusOr<std::string> Activated(const Node& node, absl::string_view activation,
                                      const std::vector<float>& numbers) {
  static constexpr struct {
    absl::string_view name, attributes[2];
    size_t count;
  } kActivations[] = {{"Elu", {"alpha"}, 1}, {"HardSigmoid", {"alpha", "beta"}, 2},
                      {"HardSwish", {}, 0},  {"LeakyRelu", {"alpha"}, 1},
                      {"Relu", {}, 0},       {"Sigmoid", {}, 0},
                      {"Softplus", {}, 0},   {"Softsign", {}, 0},
                      {"Tanh", {}, 0},       {"ThresholdedRelu", {"alpha"}, 1}};
  if (activation == "Clip" && numbers.size() == 2)
    return absl::StrCat("low = Constant(value_float=", Number(numbers[0]),
                        "); high = Constant(value_float=", Number(numbers[1]),
                        "); y = Clip(x, low, high)");
  for (const auto& known : kActivations) {
    if (known.name != activation) continue;
    if (numbers.size() < known.count)
      return node.Invalid(absl::StrCat(numbers.size(), " numbers for the activation ", activation));
    std::string text = absl::StrCat("y = ", activation, "(x");
    for (size_t i = 0; i < known.count; ++i)
      absl::StrAppend(&text, ", ", known.attributes[i], "=", Number(numbers[i]));
    return absl::StrCat(text, ")");
  }
  return node.Unimplemented(absl::StrCat("activation '", activation.substr(0, 200), "' with ",
                                         numbers.size(), " numbers"));
}

constexpr char kConv[] = "auto_pad dilations group kernel_shape pads strides";

// activation(conv(x, w, b) + z)
absl::StatusOr<std::string> ComposeFusedConv(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", ""));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> numbers, node.Floats("activation_params"));
  const bool adds = HasInput(node, 3), activates = !activation.empty();
  const char* const result = activates ? "x" : "y";
  std::string text = absl::StrCat("X, W, B, Z -> y:", adds ? "conv" : result, " = Conv(X, W, B, ",
                                  PassedOn(kConv), ");");
  if (adds) absl::StrAppend(&text, result, " = Add(conv, Z);");
  if (!activates) return text;
  ABSL_ASSIGN_OR_RETURN(const std::string last, Activated(node, activation, numbers));
  return text + last;
}

// activation(alpha * A * B + beta * C)
absl::StatusOr<std::string> ComposeFusedGemm(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string activation, node.String("activation", ""));
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("activation_alpha", 0));
  ABSL_ASSIGN_OR_RETURN(const float beta, node.Float("activation_beta", 0));
  const std::string product =
      "Gemm(A, B, C, alpha=@alpha, beta=@beta, transA=@transA, transB=@transB)";
  if (activation.empty()) return absl::StrCat("A, B, C -> y: y = ", product);
  ABSL_ASSIGN_OR_RETURN(const std::string last, Activated(node, activation, {alpha, beta}));
  return absl::StrCat("A, B, C -> y: x = ", product, ";", last);
}

absl::StatusOr<std::string> ComposeGelu(const Node&) { return std::string("x -> y: y = Gelu(x)"); }
absl::StatusOr<std::string> ComposeBiasGelu(const Node&) {
  return std::string("x, bias -> y: sum = Add(x, bias); y = Gelu(sum)");
}
absl::StatusOr<std::string> ComposeFastGelu(const Node& node) {
  if (!HasInput(node, 1)) return std::string("x -> y: y = Gelu(x, approximate='tanh')");
  return std::string("x, bias -> y: sum = Add(x, bias); y = Gelu(sum, approximate='tanh')");
}
// x * sigmoid(alpha * x)
absl::StatusOr<std::string> ComposeQuickGelu(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1.702f));
  return absl::StrCat("x -> y: y = Swish(x, alpha=", Number(alpha), ")");
}

// The sum of input, skip and a bias, as "sum".
std::string SkipSum(bool adds_bias) {
  return adds_bias ? "first = Add(x, skip); sum = Add(first, bias);" : "sum = Add(x, skip);";
}

// The outputs are the normalized sum, its mean, the inverse of its deviation, and the sum.
absl::StatusOr<std::string> ComposeSkipLayerNormalization(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-12f));
  std::string outputs = "y";
  if (HasOutput(node, 1) || HasOutput(node, 2)) outputs = "y, mean, inverse";
  return absl::StrCat(
      "x, skip, scale, shift, bias -> y, mean, inverse, sum:", SkipSum(HasInput(node, 4)), outputs,
      " = LayerNormalization(sum, scale, shift, axis=-1, epsilon=", Number(epsilon), ")");
}

// The same without a mean and a shift.
absl::StatusOr<std::string> ComposeSkipSimplified(const Node& node) {
  if (HasOutput(node, 1) || HasOutput(node, 2))
    return node.Unimplemented("the outputs mean and inv_std_var");
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-6f));
  return absl::StrCat("x, skip, scale, bias -> y, mean, inverse, sum:", SkipSum(HasInput(node, 3)),
                      "y = RMSNormalization(sum, scale, axis=-1, epsilon=", Number(epsilon), ")");
}

// ONNX Runtime has it in ONNX's own domain.
absl::StatusOr<std::string> ComposeSimplified(const Node& node) {
  if (HasOutput(node, 1)) return node.Unimplemented("the output inv_std_var");
  return std::string("x, scale -> y: y = RMSNormalization(x, scale, axis=@axis, epsilon=@epsilon)");
}

}  // namespace

TILEWIRE_OPERATORS(Microsoft) = {
    Composed("SimplifiedLayerNormalization", 1, 2, 2, "axis epsilon stash_type", ComposeSimplified),
    Composed("com.microsoft.BiasGelu", 1, 2, 2, "", ComposeBiasGelu),
    Composed("com.microsoft.FastGelu", 1, 1, 2, "", ComposeFastGelu),
    Composed("com.microsoft.FusedConv", 1, 2, 4,
             "activation activation_params auto_pad dilations group kernel_shape pads strides",
             ComposeFusedConv),
    Composed("com.microsoft.FusedGemm", 1, 2, 3,
             "activation activation_alpha activation_beta alpha beta transA transB",
             ComposeFusedGemm),
    Composed("com.microsoft.Gelu", 1, 1, 1, "", ComposeGelu),
    Composed("com.microsoft.QuickGelu", 1, 1, 1, "alpha", ComposeQuickGelu),
    Composed("com.microsoft.SkipLayerNormalization", 1, 3, 5, "epsilon",
             ComposeSkipLayerNormalization),
    Composed("com.microsoft.SkipSimplifiedLayerNormalization", 1, 3, 4, "epsilon",
             ComposeSkipSimplified),
};

}  // namespace tilewire::graph
