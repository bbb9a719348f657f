// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/recurrent/rnn_activations.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"

namespace tilewire::reader {
namespace {

using functions::EltwiseAlgorithm;
using functions::RnnActivation;
using Form = functions::RnnActivation::Form;

struct Named {
  absl::string_view name;
  RnnActivation activation;  // with ONNX's defaults
  bool has_alpha = false, has_beta = false;
};

constexpr Named kFunctions[] = {
    {"Relu", {EltwiseAlgorithm::kRelu}},
    {"Tanh", {EltwiseAlgorithm::kTanh}},
    {"Sigmoid", {EltwiseAlgorithm::kLogistic}},
    {"Affine", {EltwiseAlgorithm::kLinear, 1, 0}, true, true},
    {"LeakyRelu", {EltwiseAlgorithm::kRelu, 0.01f}, true},
    {"ThresholdedRelu", {EltwiseAlgorithm::kTanh, 1, 0, Form::kThresholdedRelu}, true},
    {"ScaledTanh", {EltwiseAlgorithm::kTanh, 1, 1, Form::kScaledTanh}, true, true},
    {"HardSigmoid", {EltwiseAlgorithm::kHardSigmoid, 0.2f, 0.5f}, true, true},
    {"Elu", {EltwiseAlgorithm::kElu, 1}, true},
    {"Softsign", {EltwiseAlgorithm::kTanh, 0, 0, Form::kSoftsign}},
    {"Softplus", {EltwiseAlgorithm::kSoftRelu}},
};

absl::StatusOr<Named> FindFunction(const Node& node, absl::string_view name) {
  for (const Named& function : kFunctions) {
    if (absl::EqualsIgnoreCase(function.name, name)) return function;
  }
  return node.Invalid(absl::StrCat("activation '", name.substr(0, 200), "'"));
}

// f, g and h.
std::vector<std::string> UsualNames(functions::RnnCell cell, int64_t directions) {
  std::vector<std::string> names;
  for (int64_t d = 0; d < directions; ++d) {
    if (cell != functions::RnnCell::kVanillaRnn) names.push_back("Sigmoid");
    names.push_back("Tanh");
    if (cell == functions::RnnCell::kLstm) names.push_back("Tanh");
  }
  return names;
}

}  // namespace

absl::StatusOr<std::vector<RnnActivation>> ReadRnnActivations(const Node& node,
                                                              functions::RnnCell cell,
                                                              int64_t directions) {
  ABSL_ASSIGN_OR_RETURN(std::vector<std::string> names, node.Strings("activations"));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> alphas, node.Floats("activation_alpha"));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> betas, node.Floats("activation_beta"));
  const std::vector<std::string> usual = UsualNames(cell, directions);
  if (names.empty()) names = usual;
  if (names.size() != usual.size()) {
    return node.Invalid(absl::StrCat(names.size(), " activations, expected ", usual.size()));
  }
  std::vector<RnnActivation> activations;
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    ABSL_ASSIGN_OR_RETURN(Named function, FindFunction(node, name));
    if (function.has_alpha && alpha < alphas.size()) function.activation.alpha = alphas[alpha++];
    if (function.has_beta && beta < betas.size()) function.activation.beta = betas[beta++];
    activations.push_back(function.activation);
  }
  if (alpha < alphas.size() || beta < betas.size())
    return node.Invalid("activation_alpha or activation_beta has more numbers than functions take");
  return activations;
}

}  // namespace tilewire::reader
