// SPDX-License-Identifier: Apache-2.0
//
// Operators that ONNX Runtime's optimiser writes in the place of several of ONNX's operators.
// They are taken apart again here: passes then fuse what this engine fuses. Source: ONNX Runtime's
// ContribOperators.md, version 1 of com.microsoft.
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
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
      return node.Invalid(numbers.size(), " numbers for the activation ", activation);
    std::string text = absl::StrCat("y = ", activation, "(x");
    for (size_t i = 0; i < known.count; ++i)
      absl::StrAppend(&text, ", ", known.attributes[i], "=", NumberText(numbers[i]));
    return absl::StrCat(text, ")");
  }
  return node.Unimplemented("activation '", activation.substr(0, 200), "' with ", numbers.size(),
                            " numbers");
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

// The sum of rows of tables of words, positions and segments, normalized. Positions are counted
// where they are not given. The second output has the length of each sequence, as its mask says it.
absl::StatusOr<std::string> ComposeEmbedding(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-12f));
  for (const int i : {2, 3, 5, 6}) {
    if (!node.HasInput(i)) return node.Invalid("input ", i, " is missing");
  }
  const bool has_segments = node.HasInput(4);
  if (has_segments != node.HasInput(1)) return node.Invalid("segments without their table");
  std::string text =
      "ids, segment_ids, word, position, segment, gamma, beta, mask, position_ids ->"
      " y, mask_index, sum: words = Gather(word, ids);";
  text += node.HasInput(8) ? "places = Gather(position, position_ids);"
                           : "start = Constant(value_ints=[0]); end = Shape(ids, start=1, end=2);"
                             "places = Slice(position, start, end);";
  text += has_segments ? "first = Add(words, places); segments = Gather(segment, segment_ids);"
                         "sum = Add(first, segments);"
                       : "sum = Add(words, places);";
  if (node.HasOutput(1)) {
    text += "batch = Shape(ids, start=0, end=1); nothing = ConstantOfShape(batch);";
    text += node.HasInput(7)
                ? "axis = Constant(value_ints=[1]); mask_index = ReduceSum(mask, axis, keepdims=0);"
                : "mask_index = Cast(nothing, to=6);";
  }
  return absl::StrCat(
      text, "y = LayerNormalization(sum, gamma, beta, axis=-1, epsilon=", NumberText(epsilon), ")");
}

// Angles come after positions.
absl::StatusOr<std::string> ComposeRotary(const Node& node) {
  for (const absl::string_view name : {"is_packed_batching", "scale"}) {
    if (node.HasAttribute(name)) {
      const bool is_usual = name == "scale" ? node.Float(name, 1).value_or(0) == 1
                                            : node.Int(name, 0).value_or(1) == 0;
      if (!is_usual) return node.Unimplemented(name, " other than its default");
    }
  }
  return absl::StrCat("x, positions, cos, sin -> y: y = RotaryEmbedding(x, cos, sin, positions, ",
                      PassedOn("interleaved num_heads rotary_embedding_dim"), ")");
}

}  // namespace

TILEWIRE_OPERATORS(Microsoft) = {
    Composed("SimplifiedLayerNormalization", 1, 2, 2, "axis epsilon stash_type", ComposeSimplified),
    Composed("com.microsoft.BiasGelu", 1, 2, 2, "", ComposeBiasGelu),
    Composed("com.microsoft.EmbedLayerNormalization", 1, 1, 9, "epsilon mask_index_type",
             ComposeEmbedding),
    Composed("com.microsoft.FastGelu", 1, 1, 2, "", ComposeFastGelu),
    Composed("com.microsoft.FusedConv", 1, 2, 4,
             "activation activation_params auto_pad dilations group kernel_shape pads strides",
             ComposeFusedConv),
    Composed("com.microsoft.FusedGemm", 1, 2, 3,
             "activation activation_alpha activation_beta alpha beta transA transB",
             ComposeFusedGemm),
    Composed("com.microsoft.Gelu", 1, 1, 1, "", ComposeGelu),
    Composed("com.microsoft.QuickGelu", 1, 1, 1, "alpha", ComposeQuickGelu),
    Composed("com.microsoft.RotaryEmbedding", 1, 4, 4,
             "interleaved is_packed_batching num_heads rotary_embedding_dim scale", ComposeRotary),
    Composed("com.microsoft.SkipLayerNormalization", 1, 3, 5, "epsilon",
             ComposeSkipLayerNormalization),
    Composed("com.microsoft.SkipSimplifiedLayerNormalization", 1, 3, 4, "epsilon",
             ComposeSkipSimplified),
};

}  // namespace tilewire::reader
