// SPDX-License-Identifier: Apache-2.0
#include "service/wire/edit_distance.h"

#include <algorithm>
#include <numeric>
#include <utility>
#include <vector>

namespace tilewire::service {

// Row by row, with the two rows before.
int EditDistance(absl::string_view a, absl::string_view b) {
  std::vector<int> row(b.size() + 1), before(b.size() + 1), earlier;
  std::iota(row.begin(), row.end(), 0);  // the distances of no letters of `a`
  for (size_t i = 0; i < a.size(); ++i) {
    earlier = std::exchange(before, row);
    row[0] = static_cast<int>(i) + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      const int replaced = before[j] + (a[i] == b[j] ? 0 : 1);
      row[j + 1] = std::min({replaced, row[j] + 1, before[j + 1] + 1});
      const bool swapped = i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j];
      if (swapped) row[j + 1] = std::min(row[j + 1], earlier[j - 1] + 1);
    }
  }
  return row.back();
}

}  // namespace tilewire::service
