// SPDX-License-Identifier: Apache-2.0
#include "engine/tuning/assignment.h"

#include <set>

namespace tilewire::tuning {
namespace {

bool IsEqualized(const EqualizedTensor& tensor, const Precisions& precisions) {
  return precisions[tensor.giver] == TunedPrecision::kInt8 &&
         precisions[tensor.reader] == TunedPrecision::kInt8;
}

}  // namespace

Corrections CorrectionsOf(const Assignment& assignment) {
  Corrections corrections;
  if (assignment.corrections == nullptr) return corrections;
  std::set<int> plain;  // layers whose source is not equalized, though it could be
  for (const EqualizedRange& one : assignment.corrections->tensors) {
    if (IsEqualized(one.tensor, assignment.precisions)) {
      corrections.tensors.push_back(one.tensor);
    } else {
      plain.insert(one.tensor.reader);
    }
  }
  for (const auto& [layer, shift] : assignment.corrections->shifts) {
    if (assignment.precisions[layer] == TunedPrecision::kInt8 && !plain.contains(layer))
      corrections.shifts[layer] = shift;
  }
  return corrections;
}

std::map<std::string, Range> RangesOf(const Assignment& assignment, const Conversions& conversions,
                                      const Calibration& calibration) {
  const auto method_of = [&](const std::string& tensor) {
    return assignment.methods[calibration.GroupOf(tensor)];
  };
  std::map<std::string, Range> ranges;
  for (const std::string& tensor : conversions.tensors)
    ranges[tensor] = calibration.RangeOf(calibration.GroupOf(tensor), method_of(tensor));
  if (assignment.corrections == nullptr) return ranges;
  for (const EqualizedRange& one : assignment.corrections->tensors) {
    if (!IsEqualized(one.tensor, assignment.precisions)) continue;
    const std::string& name = one.tensor.name;
    ranges[name] = one.ranges[static_cast<int>(method_of(name))];
  }
  return ranges;
}

TensorParams ParamsOf(const std::map<std::string, Range>& ranges) {
  TensorParams params;
  for (const auto& [name, range] : ranges) params[name] = ByteParams(range);
  return params;
}

}  // namespace tilewire::tuning
