// SPDX-License-Identifier: Apache-2.0
#include "engine/training/average.h"

#include <algorithm>
#include <vector>

#include "engine/training/blocks.h"

namespace tilewire::training {

void MoveAverages(double decay, int64_t step, absl::Span<const AveragedParameter> parameters,
                  const threading::Team& team) {
  const auto t = static_cast<double>(step);
  const double kept = std::min(decay, (1 + t) / (10 + t));
  const auto old_share = static_cast<float>(kept), new_share = static_cast<float>(1 - kept);
  std::vector<int64_t> sizes;
  for (const AveragedParameter& one : parameters)
    sizes.push_back(static_cast<int64_t>(one.value.size()));
  Blocks(sizes).ForEach(team, [&](int64_t, size_t array, int64_t first, int64_t count) {
    const float* const value = parameters[array].value.data() + first;
    float* const average = parameters[array].average.data() + first;
    for (int64_t i = 0; i < count; ++i) average[i] = old_share * average[i] + new_share * value[i];
  });
}

}  // namespace tilewire::training
