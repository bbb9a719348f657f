// SPDX-License-Identifier: Apache-2.0
#include "engine/facade/parameter_averages.h"

#include <cstring>
#include <utility>

#include "engine/base/status_macros.h"
#include "engine/training/average.h"

namespace tilewire {
namespace {

absl::Span<float> AverageIn(AlignedBuffer& buffer) {
  return {reinterpret_cast<float*>(buffer.data()), buffer.size() / sizeof(float)};
}

}  // namespace

absl::Status ParameterAverages::Keep(absl::Span<const int> indices) {
  for (int index : indices) {
    if (decay_ == 0 || averages_.contains(index)) continue;
    const absl::Span<const float> value = store_.value(index);
    ABSL_ASSIGN_OR_RETURN(AlignedBuffer average,
                          AlignedBuffer::Allocate(value.size() * sizeof(float)));
    if (!value.empty()) std::memcpy(average.data(), value.data(), average.size());
    averages_.emplace(index, std::move(average));
  }
  return absl::OkStatus();
}

void ParameterAverages::Move(int64_t step, const threading::Team& team) {
  std::vector<training::AveragedParameter> parameters;
  for (auto& [index, average] : averages_)
    parameters.push_back({store_.value(index), AverageIn(average)});
  if (!parameters.empty()) training::MoveAverages(decay_, step, parameters, team);
}

void ParameterAverages::Exchange() {
  for (auto& [index, average] : averages_) store_.ExchangeValue(index, &average);
}

}  // namespace tilewire
