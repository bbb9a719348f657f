// SPDX-License-Identifier: Apache-2.0
//
// Steps of optimizers of ai.onnx.preview.training, which files of training hold, for any number of
// tensors: inputs are the learning rate, the number of the update, all tensors, all gradients, and
// all tensors of each state; outputs are the new tensors, then each new state. Source: ONNX's
// operator documents, version 1 of the domain.
#include <climits>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// The statements of one optimizer: those for all tensors, and those that make x#_new of tensor #,
// and the new states s#_new and u#_new.
struct OptimizerStep {
  std::vector<std::string> states;  // "s", "u"
  std::string once, each;
};

// The text for as many tensors as the node has. kInvalidArgument: inputs that do not come out even.
absl::StatusOr<std::string> StepText(const Node& node, const OptimizerStep& step) {
  const size_t groups = 2 + step.states.size(), given = node.inputs.size() - 2;
  if (given % groups != 0)
    return node.Invalid(node.inputs.size(), " inputs, where there are 2 and ", groups,
                        " for each tensor");
  std::vector<std::string> names = {"x", "g"}, inputs = {"rate", "count"}, outputs;
  names.insert(names.end(), step.states.begin(), step.states.end());
  for (const std::string& name : names) {
    for (size_t i = 0; i < given / groups; ++i) {
      inputs.push_back(absl::StrCat(name, i));
      if (name != "g") outputs.push_back(absl::StrCat(name, i, "_new"));
    }
  }
  std::string text = absl::StrCat(absl::StrJoin(inputs, ", "), " -> ", absl::StrJoin(outputs, ", "),
                                  ":", step.once);
  for (size_t i = 0; i < given / groups; ++i)
    absl::StrAppend(&text, absl::StrReplaceAll(step.each, {{"#", absl::StrCat(i)}}));
  return text;
}

// The constant `name` of an attribute.
absl::StatusOr<std::string> AttributeNumber(const Node& node, absl::string_view name,
                                            float absent) {
  ABSL_ASSIGN_OR_RETURN(const float number, node.Float(name, absent));
  return ConstantText(name, number);
}

constexpr absl::string_view kRegularized =
    "decay# = Mul(norm_coefficient, x#); r# = Add(decay#, g#);";

// r = norm_coefficient x + g; s_new = s + r^2;
// x_new = x - rate / (1 + count decay_factor) r / (sqrt(s_new) + epsilon)
absl::StatusOr<std::string> ComposeAdagrad(const Node& node) {
  OptimizerStep step{{"s"}, "number = Cast(count, to=1);", std::string(kRegularized)};
  step.once += ConstantText("one", 1);
  for (const auto& [name, absent] : {std::pair("decay_factor", 0.0f), std::pair("epsilon", 1e-6f),
                                     std::pair("norm_coefficient", 0.0f)}) {
    ABSL_ASSIGN_OR_RETURN(const std::string constant, AttributeNumber(node, name, absent));
    step.once += constant;
  }
  step.once +=
      "part = Mul(number, decay_factor); divisor = Add(one, part); by = Div(rate, divisor);";
  step.each +=
      "square# = Mul(r#, r#); s#_new = Add(s#, square#); root# = Sqrt(s#_new);"
      "under# = Add(root#, epsilon); scaled# = Mul(by, r#); step# = Div(scaled#, under#);"
      "x#_new = Sub(x#, step#);";
  return StepText(node, step);
}

// r = norm_coefficient x + g; s_new = alpha s + (1 - alpha) r; u_new = beta u + (1 - beta) r^2;
// x_new = (x - by s_new / (sqrt(u_new) + epsilon)) (1 - norm_coefficient_post)
// by = rate, and times sqrt(1 - beta^count) / (1 - alpha^count) where count > 0
absl::StatusOr<std::string> ComposeAdam(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const float alpha, node.Float("alpha", 0.9f));
  ABSL_ASSIGN_OR_RETURN(const float beta, node.Float("beta", 0.999f));
  ABSL_ASSIGN_OR_RETURN(const float post, node.Float("norm_coefficient_post", 0));
  OptimizerStep step{{"s", "u"}, "number = Cast(count, to=1);", std::string(kRegularized)};
  step.once +=
      absl::StrCat(ConstantText("one", 1), ConstantText("zero", 0), ConstantText("alpha", alpha),
                   ConstantText("beta", beta), ConstantText("alpha_rest", 1.0f - alpha),
                   ConstantText("beta_rest", 1.0f - beta), ConstantText("kept", 1.0f - post));
  for (const auto& [name, absent] :
       {std::pair("epsilon", 1e-6f), std::pair("norm_coefficient", 0.0f)}) {
    ABSL_ASSIGN_OR_RETURN(const std::string constant, AttributeNumber(node, name, absent));
    step.once += constant;
  }
  step.once +=
      "alphas = Pow(alpha, number); betas = Pow(beta, number); alphas_rest = Sub(one, alphas);"
      "betas_rest = Sub(one, betas); root = Sqrt(betas_rest); product = Mul(rate, root);"
      "later = Div(product, alphas_rest); is_later = Less(zero, number);"
      "by = Where(is_later, later, rate);";
  step.each +=
      "s#_old = Mul(alpha, s#); s#_add = Mul(alpha_rest, r#); s#_new = Add(s#_old, s#_add);"
      "square# = Mul(r#, r#); u#_old = Mul(beta, u#); u#_add = Mul(beta_rest, square#);"
      "u#_new = Add(u#_old, u#_add); root# = Sqrt(u#_new); under# = Add(root#, epsilon);"
      "scaled# = Mul(by, s#_new); step# = Div(scaled#, under#); moved# = Sub(x#, step#);"
      "x#_new = Mul(kept, moved#);";
  return StepText(node, step);
}

// r = norm_coefficient x + g; s_new = alpha s + (count > 0 ? beta : 1) r;
// x_new = x - rate s_new, or x - rate (r + alpha s_new) with Nesterov's
absl::StatusOr<std::string> ComposeMomentum(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string mode,
                        node.OneOf("mode", "standard", {"standard", "nesterov"}));
  OptimizerStep step{{"s"}, "number = Cast(count, to=1);", std::string(kRegularized)};
  step.once += ConstantText("one", 1) + ConstantText("zero", 0);
  for (const char* name : {"alpha", "beta", "norm_coefficient"}) {
    if (!node.HasAttribute(name)) return node.Invalid("attribute '", name, "' is missing");
    ABSL_ASSIGN_OR_RETURN(const std::string constant, AttributeNumber(node, name, 0));
    step.once += constant;
  }
  step.once += "is_later = Less(zero, number); share = Where(is_later, beta, one);";
  step.each += "s#_old = Mul(alpha, s#); s#_add = Mul(share, r#); s#_new = Add(s#_old, s#_add);";
  step.each +=
      mode == "standard"
          ? "step# = Mul(rate, s#_new);"
          : "ahead# = Mul(alpha, s#_new); way# = Add(r#, ahead#); step# = Mul(rate, way#);";
  step.each += "x#_new = Sub(x#, step#);";
  return StepText(node, step);
}

}  // namespace

TILEWIRE_OPERATORS(Optimizer) = {
    Composed("ai.onnx.preview.training.Adagrad", 1, 5, INT_MAX,
             "decay_factor epsilon norm_coefficient", ComposeAdagrad),
    Composed("ai.onnx.preview.training.Adam", 1, 6, INT_MAX,
             "alpha beta epsilon norm_coefficient norm_coefficient_post", ComposeAdam),
    Composed("ai.onnx.preview.training.Momentum", 1, 5, INT_MAX, "alpha beta mode norm_coefficient",
             ComposeMomentum),
};

}  // namespace tilewire::reader
