// SPDX-License-Identifier: Apache-2.0
//
// Losses of classes, which files of training hold: the logarithm of the share that each label's
// class has, negative, weighed by its class and summed up. Labels equal to ignore_index count as
// nothing. Source: ONNX's operator documents, opset 13.
#include <string>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/composition.h"
#include "engine/onnx/ops/ops.h"

namespace tilewire::reader {
namespace {

// Statements that make `label`, which classes are numbered by, of the labels that are given, and
// `ignored`: which of them count as nothing.
std::string Labels(const Node& node, int64_t ignore_index) {
  if (!node.HasAttribute("ignore_index")) return "label = Identity(target);";
  return absl::StrCat("number = Constant(value_int=", ignore_index,
                      "); same = CastLike(number, target); ignored = Equal(target, same);"
                      "first = Constant(value_int=0); any = CastLike(first, target);"
                      "label = Where(ignored, any, target);");
}

// Statements that make `weighted` of `loss_of_each`, and `shares`, what each label counts, unless
// all count the same.
std::string Weighted(bool has_weights, bool ignores) {
  if (!has_weights && !ignores) return "weighted = Identity(loss_of_each);";
  std::string text;
  if (has_weights)
    absl::StrAppend(&text, ignores ? "weights" : "shares", " = Gather(weight, label);");
  if (!ignores) return text + "weighted = Mul(loss_of_each, shares);";
  absl::StrAppend(&text, ConstantText("zero", 0), "nothing = CastLike(zero, loss_of_each);");
  if (!has_weights)
    absl::StrAppend(&text, ConstantText("one", 1), "weights = CastLike(one, loss_of_each);");
  return text +
         "shares = Where(ignored, nothing, weights);"
         "counted = Where(ignored, nothing, loss_of_each); weighted = Mul(counted, shares);";
}

// The statements that make `loss` of `log_prob`, the logarithms of shares.
absl::StatusOr<std::string> LossText(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string reduction,
                        node.OneOf("reduction", "mean", {"none", "sum", "mean"}));
  ABSL_ASSIGN_OR_RETURN(const int64_t ignore_index, node.Int("ignore_index", 0));
  const bool has_weights = node.HasInput(2), ignores = node.HasAttribute("ignore_index");
  std::string text =
      absl::StrCat(Labels(node, ignore_index),
                   "classes = Constant(value_ints=[1]); places = Unsqueeze(label, classes);"
                   "of_labels = GatherElements(log_prob, places, axis=1);"
                   "flat = Squeeze(of_labels, classes); loss_of_each = Neg(flat);",
                   Weighted(has_weights, ignores));
  if (reduction == "none") return text + "loss = Identity(weighted)";
  if (reduction == "sum") return text + "loss = ReduceSum(weighted, keepdims=0)";
  if (!has_weights && !ignores) return text + "loss = ReduceMean(weighted, keepdims=0)";
  return text +
         "total = ReduceSum(weighted, keepdims=0); count = ReduceSum(shares, keepdims=0);"
         "loss = Div(total, count)";
}

absl::StatusOr<std::string> ComposeNegativeLogLikelihood(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, LossText(node));
  return "log_prob, target, weight -> loss:" + text;
}

absl::StatusOr<std::string> ComposeSoftmaxCrossEntropy(const Node& node) {
  ABSL_ASSIGN_OR_RETURN(const std::string text, LossText(node));
  return "scores, target, weight -> loss, log_prob: log_prob = LogSoftmax(scores, axis=1);" + text;
}

}  // namespace

TILEWIRE_OPERATORS(Loss) = {
    OfReals(Composed("NegativeLogLikelihoodLoss", 12, 2, 3, "ignore_index reduction",
                     ComposeNegativeLogLikelihood)),
    OfReals(Composed("SoftmaxCrossEntropyLoss", 12, 2, 3, "ignore_index reduction",
                     ComposeSoftmaxCrossEntropy)),
};

}  // namespace tilewire::reader
