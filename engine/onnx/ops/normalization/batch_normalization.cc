// SPDX-License-Identifier: Apache-2.0
//
// At inference: dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta, which is one
// multiplication and one addition per channel. In a network for training it is one operation, by
// the statistics of the batch unless the purpose asks for the running ones, or scale and shift are
// frozen: what does not learn stays as the file has it.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/onnx/ops/activations/activation_of.h"
#include "engine/onnx/ops/arithmetic/element_functions.h"
#include "engine/onnx/ops/normalization/normalization.h"
#include "engine/onnx/ops/ops.h"
#include "engine/onnx/ops/shapes/moves.h"
#include "engine/onnx/ops/weights.h"
#include "engine/onnx/training_refusal.h"

namespace tilewire::reader {
namespace {

// momentum * input i + (1 - momentum) * statistic
absl::Status SetRunning(NodeContext& context, int i, int output, const Operand& statistic,
                        float momentum) {
  if (!context.node.HasOutput(output)) return absl::OkStatus();
  const Operand sources[] = {context.input(i), statistic};
  const float shares[] = {momentum, 1 - momentum};
  Operand parts[2];
  for (int k = 0; k < 2; ++k) {
    const std::string name = absl::StrCat("/running", output, ".", k);
    ABSL_ASSIGN_OR_RETURN(const Operand vector,
                          ReshapeOf(context, sources[k], context.input(i).dims, name + "/vector"));
    ABSL_ASSIGN_OR_RETURN(parts[k], LinearOf(context, vector, shares[k], 0, name));
  }
  ABSL_ASSIGN_OR_RETURN(const Operand running,
                        ElementwiseOf(context, {Function::kAdd}, {parts[0], parts[1]},
                                      absl::StrCat("/running", output)));
  return context.SetOutput(running, output);
}

// Training: uses the statistics of this batch, and updates the running ones with them.
absl::Status NormalizeByBatch(NodeContext& context, float epsilon, Per per) {
  ABSL_ASSIGN_OR_RETURN(const float momentum, context.node.Float("momentum", 0.9f));
  const Operand src = context.input(0);
  std::vector<bool> reduced(src.dims.size(), per == Per::kChannel);
  reduced[0] = true;
  reduced[1] = false;
  for (int i = 3; i <= 4; ++i) {
    if (context.input(i).dims != context.input(1).dims)
      return context.node.Invalid("inputs 1 and ", i, " have different dims");
  }
  ABSL_ASSIGN_OR_RETURN(const Standard standard, Standardized(context, src, reduced, epsilon));
  ABSL_RETURN_IF_ERROR(SetRunning(context, 3, 1, standard.mean, momentum));
  ABSL_RETURN_IF_ERROR(SetRunning(context, 4, 2, standard.variance, momentum));
  return context.SetOutput(ScaledByInputs(context, standard.result, per));
}

// Normalizes with statistics, scales or shifts that are computed at run time.
absl::Status NormalizeByInputs(NodeContext& context, float epsilon, Per per) {
  const Operand src = context.input(0);
  ABSL_ASSIGN_OR_RETURN(const Operand mean, ParameterOf(context, 3, src.dims, per));
  ABSL_ASSIGN_OR_RETURN(const Operand variance, ParameterOf(context, 4, src.dims, per));
  ABSL_ASSIGN_OR_RETURN(const Operand standard,
                        StandardizedBy(context, src, mean, variance, epsilon));
  return context.SetOutput(ScaledByInputs(context, standard, per));
}

// Notes that the running statistics, inputs 3 and 4, follow those of the batch.
absl::Status AddStatistics(NodeContext& context, int64_t elements) {
  network::RunningStatistics statistics{.elements = elements};
  ABSL_ASSIGN_OR_RETURN(statistics.momentum, context.node.Float("momentum", 0.9f));
  ABSL_ASSIGN_OR_RETURN(statistics.mean, context.FloatsInPlace(3));
  ABSL_ASSIGN_OR_RETURN(statistics.variance, context.FloatsInPlace(4));
  const Dims channels = context.input(3).dims;
  statistics.batch_mean = context.EmitFurther(channels, "/batch_mean");
  statistics.batch_variance = context.EmitFurther(channels, "/batch_variance");
  context.AddStatistics(std::move(statistics));
  return absl::OkStatus();
}

absl::Status NormalizeForTraining(NodeContext& context, float epsilon) {
  const Dims dims = context.input(0).dims;
  const Node& node = context.node;
  if (dims.size() > 5) return node.Unimplemented("training of rank ", dims.size());
  for (int i = 1; i <= 4; ++i) {
    if (context.input(i).dims != Dims{dims[1]})
      return node.Invalid("input ", i, " is not one number per channel");
  }
  network::BatchNormalization norm{.epsilon = epsilon};
  const bool is_frozen =
      context.input(1).constant != nullptr && context.input(2).constant != nullptr;
  norm.uses_given_statistics = context.training()->uses_given_statistics || is_frozen;
  const int64_t elements = ElementCount(dims).value_or(0) / dims[1];
  if (!norm.uses_given_statistics && elements == 1)
    return WithRefusal(
        node.Invalid("channels of one element in the batch have no variance to train with"),
        TrainingRefusal::kNoVariance);
  std::vector<ValueId> srcs;
  for (int i = 0; i <= 2; ++i) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.Runtime(i));
  }
  for (int i = 3; norm.uses_given_statistics && i <= 4; ++i) {
    ABSL_ASSIGN_OR_RETURN(srcs.emplace_back(), context.Kept(i));
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId dst, context.Emit(norm, std::move(srcs), dims));
  if (!norm.uses_given_statistics) ABSL_RETURN_IF_ERROR(AddStatistics(context, elements));
  return context.SetOutput(dst);
}

absl::Status BuildBatchNormalization(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t training, node.Int("training_mode", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t spatial, node.Int("spatial", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t is_test, node.Int("is_test", 1));
  const Per per = spatial == 0 ? Per::kElement : Per::kChannel;
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-5f));
  const Dims& dims = context.input(0).dims;
  if (dims.size() < 2) return node.Invalid("input ", DimsToString(dims), " has no channels");
  const bool has_running =
      context.input(3).constant != nullptr && context.input(4).constant != nullptr;
  if (context.training() != nullptr && has_running) {
    if (per == Per::kElement) return node.Unimplemented("training of statistics of each element");
    return NormalizeForTraining(context, epsilon);
  }
  if (training != 0 || (node.opset() < 7 && is_test == 0))
    return NormalizeByBatch(context, epsilon, per);
  for (int i = 1; i <= 4; ++i) {
    if (context.input(i).constant == nullptr || dims.size() > 5 || per == Per::kElement)
      return NormalizeByInputs(context, epsilon, per);
  }
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> gamma, ReadVector(context, 1, dims[1]));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> beta, ReadVector(context, 2, dims[1]));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> mean, ReadVector(context, 3, dims[1]));
  ABSL_ASSIGN_OR_RETURN(const std::vector<float> variance, ReadVector(context, 4, dims[1]));
  std::vector<float> scale(gamma.size()), shift(gamma.size());
  for (size_t c = 0; c < gamma.size(); ++c) {
    const double factor = gamma[c] / std::sqrt(static_cast<double>(variance[c]) + epsilon);
    scale[c] = static_cast<float>(factor);
    shift[c] = static_cast<float>(beta[c] - mean[c] * factor);
  }
  return FinishScaleShift(context, src, std::move(scale), std::move(shift));
}

}  // namespace

TILEWIRE_OPERATORS(BatchNormalization) = {
    OfReals(TrainsWeights({"BatchNormalization", 1, 5, 5,
                           "epsilon is_test momentum spatial training_mode",
                           BuildBatchNormalization})),
};

}  // namespace tilewire::reader
