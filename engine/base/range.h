// SPDX-License-Identifier: Apache-2.0
//
// Ranges of numbered things. Pure functions.
#ifndef ENGINE_BASE_RANGE_H_
#define ENGINE_BASE_RANGE_H_

#include <cstdint>
#include <vector>

namespace tilewire {

struct Range {
  int64_t begin = 0, size = 0;
};

// Cuts `count` things into `parts` ranges whose sizes differ by at most one.
inline std::vector<Range> SplitEvenly(int64_t count, int64_t parts) {
  std::vector<Range> ranges(parts);
  int64_t begin = 0;
  for (int64_t i = 0; i < parts; ++i) {
    ranges[i] = {begin, count / parts + (i < count % parts ? 1 : 0)};
    begin += ranges[i].size;
  }
  return ranges;
}

}  // namespace tilewire

#endif  // ENGINE_BASE_RANGE_H_
