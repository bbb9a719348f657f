// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/counted_labels.h"

#include <cstring>
#include <string>

#include "absl/strings/str_join.h"

namespace tilewire {
namespace {

template <typename T>
bool AnyCounts(const LossSpec& loss, const InputTensor& target) {
  const std::string bytes = absl::StrJoin(target.pieces, "");
  for (size_t i = 0; i + sizeof(T) <= bytes.size(); i += sizeof(T)) {
    T label;
    std::memcpy(&label, bytes.data() + i, sizeof(label));
    if (label == loss.ignore_index) continue;
    if (loss.class_weights.empty() || loss.class_weights[label] > 0) return true;
  }
  return false;
}

}  // namespace

bool LacksLabels(const std::vector<LossSpec>& losses, const std::vector<TensorSpec>& specs,
                 absl::Span<const InputTensor> targets) {
  for (size_t i = 0; i < losses.size(); ++i) {
    if (losses[i].kind != LossSpec::Kind::kSoftmaxCrossEntropy || !losses[i].mean) continue;
    const bool is_wide = specs[i].type == DataType::kS64;
    if (!is_wide && specs[i].type != DataType::kS32) continue;  // probabilities
    const bool any_counts = is_wide ? AnyCounts<int64_t>(losses[i], targets[i])
                                    : AnyCounts<int32_t>(losses[i], targets[i]);
    if (!any_counts) return true;
  }
  return false;
}

}  // namespace tilewire
