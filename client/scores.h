// SPDX-License-Identifier: Apache-2.0
//
// Which classes have the highest scores. The lower index wins a tie; NaN ranks last.
#ifndef CLIENT_SCORES_H_
#define CLIENT_SCORES_H_

#include <vector>

#include "absl/types/span.h"

namespace tilewire::client {

// Indices of the `k` largest scores, best first.
std::vector<int> TopK(absl::Span<const float> scores, int k);

// e^(x - max) / sum, in double.
std::vector<float> SoftmaxOf(absl::Span<const float> scores);

}  // namespace tilewire::client

#endif  // CLIENT_SCORES_H_
