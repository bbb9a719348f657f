// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/group_packing.h"

#include <algorithm>

#include "engine/base/status_macros.h"

namespace tilewire::runtime {

bool MergesGroups(const network::Weights& weights, const Dims& target) {
  return target.size() == weights.dims.size() + 1 && target.size() > 2 &&
         target[2] > weights.dims[1];
}

absl::StatusOr<AlignedBuffer> WithZerosBetweenGroups(const network::Weights& weights,
                                                     absl::Span<const float> elements,
                                                     const Dims& target) {
  const int64_t count = static_cast<int64_t>(elements.size()), rows = weights.dims[0];
  const int64_t row = count / rows;  // of one output
  const int64_t merged = target[2] / weights.dims[1], outputs = target[1] / merged;
  ABSL_ASSIGN_OR_RETURN(AlignedBuffer buffer,
                        AlignedBuffer::Allocate(count * merged * sizeof(float)));
  float* to = reinterpret_cast<float*>(buffer.data());
  std::fill_n(to, count * merged, 0.0f);
  for (int64_t o = 0; o < rows; ++o) {
    const int64_t place = o / outputs % merged;  // of its group among the merged ones
    std::copy_n(elements.data() + o * row, row, to + (o * merged + place) * row);
  }
  return buffer;
}

}  // namespace tilewire::runtime
