// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/loss/targets.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "engine/memory/index_walk.h"
#include "engine/memory/separable_offsets.h"

namespace tilewire::loss {
namespace {

// The first index whose element is not `allowed`, said by refuse(index, offset).
template <typename Allowed, typename Refuse>
absl::Status CheckAll(const MemoryDesc& targets, Allowed allowed, Refuse refuse) {
  const SeparableOffsets offsets(targets);
  absl::Status status;
  ForEachIndex(targets.dims(), [&](const Dims& index) {
    if (!status.ok()) return;
    const int64_t offset = offsets.Offset(index);
    if (!allowed(offset)) status = refuse(absl::StrJoin(index, ", "), offset);
  });
  return status;
}

absl::Status CheckLabels(const LossDesc& desc, const void* targets) {
  const DataType type = desc.targets.data_type();
  const int64_t classes = desc.src.dim(1);
  return CheckAll(
      desc.targets,
      [&](int64_t offset) {
        const int64_t label = LabelAt(type, targets, offset);
        return (label >= 0 && label < classes) || IsIgnored(desc, label);
      },
      [&](const std::string& index, int64_t offset) {
        return InvalidArgument("label [", index, "] is ", LabelAt(type, targets, offset),
                               "; allowed: 0 to ", classes - 1,
                               desc.ignores ? absl::StrCat(", and ", desc.ignore_index) : "");
      });
}

bool IsProbability(float t) { return t >= 0 && t <= 1; }  // NaN is not

absl::Status CheckProbabilities(const MemoryDesc& targets, const float* elements) {
  if (targets.IsDense() && !targets.HasPadding()) {
    bool all = true;
    for (int64_t i = 0; i < targets.ElementCount(); ++i)
      all &= IsProbability(elements[targets.offset0() + i]);
    if (all) return absl::OkStatus();
  }
  return CheckAll(
      targets, [&](int64_t offset) { return IsProbability(elements[offset]); },
      [&](const std::string& index, int64_t offset) {
        return InvalidArgument("target [", index, "] is ", elements[offset],
                               "; allowed: probabilities, from 0 to 1");
      });
}

}  // namespace

bool TakesLabels(const LossDesc& desc) {
  return desc.algorithm == LossFunction::kSoftmaxCrossEntropy &&
         desc.targets.data_type() != DataType::kF32;
}

int64_t LabelAt(DataType type, const void* labels, int64_t offset) {
  return type == DataType::kS64 ? static_cast<const int64_t*>(labels)[offset]
                                : static_cast<const int32_t*>(labels)[offset];
}

bool IsIgnored(const LossDesc& desc, int64_t label) {
  return desc.ignores && label == desc.ignore_index;
}

float WeightOf(const LossDesc& desc, int64_t label) {
  if (IsIgnored(desc, label)) return 0;
  return desc.class_weights.empty() ? 1 : desc.class_weights[label];
}

absl::Status CheckTargets(const LossDesc& desc, const void* targets) {
  if (TakesLabels(desc)) return CheckLabels(desc, targets);
  const bool are_probabilities = desc.algorithm == LossFunction::kSoftmaxCrossEntropy ||
                                 desc.algorithm == LossFunction::kBinaryCrossEntropy;
  if (!are_probabilities) return absl::OkStatus();
  return CheckProbabilities(desc.targets, static_cast<const float*>(targets));
}

double DivisorOf(const LossDesc& desc, const void* targets) {
  if (!desc.mean) return 1;
  const auto elements = static_cast<double>(desc.src.ElementCount());
  if (desc.algorithm != LossFunction::kSoftmaxCrossEntropy) return elements;
  if (!TakesLabels(desc)) return elements / static_cast<double>(desc.src.dim(1));
  const SeparableOffsets offsets(desc.targets);
  double sum = 0;
  ForEachIndex(desc.targets.dims(), [&](const Dims& index) {
    sum += WeightOf(desc, LabelAt(desc.targets.data_type(), targets, offsets.Offset(index)));
  });
  return sum;
}

}  // namespace tilewire::loss
