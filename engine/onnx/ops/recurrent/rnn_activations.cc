// SPDX-License-Identifier: Apache-2.0
#include "engine/onnx/ops/recurrent/rnn_activations.h"

#include <string>

#include "absl/strings/match.h"
#include "engine/base/status_macros.h"
#include "engine/functions/onnx_functions.h"

namespace tilewire::reader {
namespace {

using functions::OnnxFunction;
using functions::RnnActivation;

absl::StatusOr<OnnxFunction> FindFunction(const Node& node, absl::string_view name) {
  for (const OnnxFunction& function : functions::kOnnxFunctions) {
    const bool in_cells = function.Is(OnnxFunction::kInCells | OnnxFunction::kOnlyInCells);
    if (in_cells && absl::EqualsIgnoreCase(function.op, name)) return function;
  }
  return node.Invalid("activation '", name.substr(0, 200), "'");
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
    return node.Invalid(names.size(), " activations, expected ", usual.size());
  }
  std::vector<RnnActivation> activations;
  size_t alpha = 0, beta = 0;
  for (const std::string& name : names) {
    ABSL_ASSIGN_OR_RETURN(const OnnxFunction function, FindFunction(node, name));
    RnnActivation activation = function.WithDefaults();
    if (!function.AlphaName().empty() && alpha < alphas.size()) activation.alpha = alphas[alpha++];
    if (!function.BetaName().empty() && beta < betas.size()) activation.beta = betas[beta++];
    activations.push_back(activation);
  }
  if (alpha < alphas.size() || beta < betas.size())
    return node.Invalid("activation_alpha or activation_beta has more numbers than functions take");
  return activations;
}

}  // namespace tilewire::reader
