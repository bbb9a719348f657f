// SPDX-License-Identifier: Apache-2.0
#include "client/scores.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace tilewire::client {

std::vector<int> TopK(absl::Span<const float> scores, int k) {
  std::vector<int> order(scores.size());
  std::iota(order.begin(), order.end(), 0);
  k = std::clamp<int>(k, 0, order.size());
  const auto better = [&](int a, int b) {
    if (std::isnan(scores[a]) != std::isnan(scores[b])) return std::isnan(scores[b]);
    return scores[a] > scores[b] || (!(scores[a] < scores[b]) && a < b);
  };
  std::partial_sort(order.begin(), order.begin() + k, order.end(), better);
  order.resize(k);
  return order;
}

std::vector<float> SoftmaxOf(absl::Span<const float> scores) {
  if (scores.empty()) return {};
  const double largest = *std::max_element(scores.begin(), scores.end());
  double total = 0;
  for (const float score : scores) total += std::exp(score - largest);
  std::vector<float> result;
  for (const float score : scores)
    result.push_back(static_cast<float>(std::exp(score - largest) / total));
  return result;
}

}  // namespace tilewire::client
