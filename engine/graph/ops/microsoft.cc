// SPDX-License-Identifier: Apache-2.0
//
// What ONNX Runtime's optimiser writes in the place of several of ONNX's operators, and is taken
// apart again here: passes then fuse what this engine fuses. Source: ONNX Runtime's
// ContribOperators.md, version 1 of com.microsoft.
#include <initializer_list>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/composition.h"
#include "engine/graph/ops/ops.h"

namespace tilewire::graph {
namespace {

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
    return absl::StrCat(ConstantText("low", numbers[0]), ConstantText("high", numbers[1]),
                        "y = Clip(x, low, high)");
  for (const auto& known : kActivations) {
    if (known.name != activation) continue;
    if (numbers.size() < known.count)
      return node.Invalid(absl::StrCat(numbers.size(), " numbers for the activation ", activation));
    std::string text = absl::StrCat("y = ", activation, "(x");
    for (size_t i = 0; i < known.count; ++i)
      absl::StrAppend(&text, ", ", known.attributes[i], "=", NumberText(numbers[i]));
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
  const bool adds = node.HasInput(3), activates = !activation.empty();
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
  if (!node.HasInput(1)) return std::string("x -> y: y = Gelu(x, approximate='tanh')");
  return std::string("x, bias -> y: sum = Add(x, bias); y = Gelu(sum, approximate='tanh')");
}
// x * sigmoid(alpha * x)
absl::StatusOr<std::string> ComposeQuickGelu(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 1.702f));
  return absl::StrCat("x -> y: y = Swish(x, alpha=", NumberText(alpha), ")");
}

// The sum of input, skip and a bias, as "sum".
std::string SkipSum(bool adds_bias) {
  return adds_bias ? "first = Add(x, skip); sum = Add(first, bias);" : "sum = Add(x, skip);";
}

// The outputs are the normalized sum, its mean, the inverse of its deviation, and the sum.
absl::StatusOr<std::string> ComposeSkipLayerNormalization(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-12f));
  std::string outputs = "y";
  if (node.HasOutput(1) || node.HasOutput(2)) outputs = "y, mean, inverse";
  return absl::StrCat(
      "x, skip, scale, shift, bias -> y, mean, inverse, sum:", SkipSum(node.HasInput(4)), outputs,
      " = LayerNormalization(sum, scale, shift, axis=-1, epsilon=", NumberText(epsilon), ")");
}

// The same without a mean and a shift.
absl::StatusOr<std::string> ComposeSkipSimplified(const Node& node) {
  if (node.HasOutput(1) || node.HasOutput(2))
    return node.Unimplemented("the outputs mean and inv_std_var");
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-6f));
  return absl::StrCat("x, skip, scale, bias -> y, mean, inverse, sum:", SkipSum(node.HasInput(3)),
                      "y = RMSNormalization(sum, scale, axis=-1, epsilon=", NumberText(epsilon),
                      ")");
}

// ONNX Runtime has it in ONNX's own domain.
absl::StatusOr<std::string> ComposeSimplified(const Node& node) {
  if (node.HasOutput(1)) return node.Unimplemented("the output inv_std_var");
  return std::string("x, scale -> y: y = RMSNormalization(x, scale, axis=@axis, epsilon=@epsilon)");
}

// Of heads that stand one after the other in the last dimension.
constexpr char kOfHeads[] =
    "q_num_heads=@num_heads, kv_num_heads=@num_heads, scale=@scale, is_causal=@unidirectional)";

// kUnimplemented: one of these inputs, or a second output, is there, or one of these attributes is
// not 0.
absl::Status CheckPlainAttention(const Node& node, std::initializer_list<int> left_out,
                                 std::initializer_list<absl::string_view> attributes) {
  for (int i : left_out) {
    if (node.HasInput(i)) return node.Unimplemented(absl::StrCat("input ", i));
  }
  for (int i = 1; i < node.proto().output_size(); ++i) {
    if (node.HasOutput(i)) return node.Unimplemented(absl::StrCat("output ", i));
  }
  for (const absl::string_view name : attributes) {
    ABSL_ASSIGN_OR_RETURN(const int64_t value, node.Int(name, 0));
    if (value != 0) return node.Unimplemented(absl::StrCat(name, " ", value));
  }
  return absl::OkStatus();
}

// The bias is that of queries, keys and values, one after the other.
absl::StatusOr<std::string> ComposeMultiHeadAttention(const Node& node) {
  ABSL_RETURN_IF_ERROR(CheckPlainAttention(node, {4, 6, 7, 8, 9}, {}));
  std::string text = "query, key, value, bias, padding, mask -> y:";
  const bool adds = node.HasInput(3);
  if (adds) {
    text +=
        "of_q, of_k, of_v = Split(bias, num_outputs=3); q = Add(query, of_q);"
        "k = Add(key, of_k); v = Add(value, of_v);";
  }
  return absl::StrCat(text, "y = Attention(", adds ? "q, k, v, " : "query, key, value, ",
                      node.HasInput(5) ? "mask, " : "_, ", kOfHeads);
}

// The weights give queries, keys and values in one product.
absl::StatusOr<std::string> ComposePackedAttention(const Node& node) {
  ABSL_RETURN_IF_ERROR(
      CheckPlainAttention(node, {3, 4, 6}, {"do_rotary", "past_present_share_buffer"}));
  if (node.HasAttribute("qkv_hidden_sizes")) return node.Unimplemented("qkv_hidden_sizes");
  const bool adds = node.HasInput(2);
  return absl::StrCat("x, weights, bias, padding, past, mask -> y:",
                      adds ? "product = MatMul(x, weights); all = Add(product, bias);"
                           : "all = MatMul(x, weights);",
                      "q, k, v = Split(all, axis=-1, num_outputs=3); y = Attention(q, k, v, ",
                      node.HasInput(5) ? "mask, " : "_, ", kOfHeads);
}

}  // namespace

TILEWIRE_OPERATORS(Microsoft) = {
    Composed("SimplifiedLayerNormalization", 1, 2, 2, "axis epsilon stash_type", ComposeSimplified),
    Composed("com.microsoft.Attention", 1, 2, 7,
             "do_rotary mask_filter_value num_heads past_present_share_buffer qkv_hidden_sizes "
             "rotary_embedding_dim scale unidirectional",
             ComposePackedAttention),
    Composed("com.microsoft.BiasGelu", 1, 2, 2, "", ComposeBiasGelu),
    Composed("com.microsoft.FastGelu", 1, 1, 2, "", ComposeFastGelu),
    Composed("com.microsoft.FusedConv", 1, 2, 4,
             "activation activation_params auto_pad dilations group kernel_shape pads strides",
             ComposeFusedConv),
    Composed("com.microsoft.FusedGemm", 1, 2, 3,
             "activation activation_alpha activation_beta alpha beta transA transB",
             ComposeFusedGemm),
    Composed("com.microsoft.Gelu", 1, 1, 1, "", ComposeGelu),
    Composed("com.microsoft.MultiHeadAttention", 1, 3, 10,
             "mask_filter_value num_heads scale unidirectional", ComposeMultiHeadAttention),
    Composed("com.microsoft.QuickGelu", 1, 1, 1, "alpha", ComposeQuickGelu),
    Composed("com.microsoft.SkipLayerNormalization", 1, 3, 5, "epsilon",
             ComposeSkipLayerNormalization),
    Composed("com.microsoft.SkipSimplifiedLayerNormalization", 1, 3, 4, "epsilon",
             ComposeSkipSimplified),
};

}  // namespace tilewire::graph
