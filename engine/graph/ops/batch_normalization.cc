// SPDX-License-Identifier: Apache-2.0
//
// At inference: dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta, which is one
// multiplication and one addition per channel.
#include <cmath>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/graph/ops/ops.h"
#include "engine/graph/ops/weights.h"

namespace tilewire::graph {

absl::Status LowerBatchNormalization(NodeContext& context) {
  const Node& node = context.node;
  ABSL_ASSIGN_OR_RETURN(const int64_t training, node.Int("training_mode", 0));
  ABSL_ASSIGN_OR_RETURN(const int64_t spatial, node.Int("spatial", 1));
  ABSL_ASSIGN_OR_RETURN(const int64_t is_test, node.Int("is_test", 1));
  if (training != 0 || spatial != 1 || (node.opset() < 7 && is_test == 0)) {
    return node.Unimplemented("only inference with statistics per channel");
  }
  ABSL_ASSIGN_OR_RETURN(const float epsilon, node.Float("epsilon", 1e-5f));
  ABSL_ASSIGN_OR_RETURN(const ValueId src, context.Runtime(0));
  const Dims& dims = context.input(0).dims;
  if (dims.size() < 2)
    return node.Invalid(absl::StrCat("input ", DimsToString(dims), " has no channels"));
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

}  // namespace tilewire::graph
