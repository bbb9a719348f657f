// SPDX-License-Identifier: Apache-2.0
#include "engine/network/network_check.h"

namespace tilewire::network {

absl::string_view Lack(const Loss& loss, const Tensors& tensors) {
  const Value &x = *tensors.srcs[0], &targets = *tensors.srcs[1];
  if (x.type != DataType::kF32 || tensors.dst->type != DataType::kF32) return "real numbers";
  if (tensors.result() != Dims{1}) return "a result of one number";
  Dims expected = x.dims;
  const bool has_classes = loss.function == Loss::Function::kSoftmaxCrossEntropy;
  const auto weights = static_cast<int64_t>(loss.class_weights.size());
  if ((has_classes || weights > 0) && x.dims.size() < 2) return "classes";
  if (weights > 0 && (weights != x.dims[1] || !functions::HasClassWeights(loss.function)))
    return "a weight per class";
  if (has_classes) {
    const bool takes_labels = targets.type == DataType::kS32 || targets.type == DataType::kS64;
    if (takes_labels) expected.erase(expected.begin() + 1);
  } else if (targets.type != DataType::kF32) {
    return "targets that are real numbers";
  }
  if (targets.dims != expected) return "targets that fit its source";
  if (!loss.gives_gradient) return "";
  const Value& gradient = *tensors.more_results[0];
  const bool fits = gradient.dims == x.dims && gradient.type == DataType::kF32;
  return fits ? "" : "a gradient of its source's dims";
}

}  // namespace tilewire::network
