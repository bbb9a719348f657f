// SPDX-License-Identifier: Apache-2.0
//
// Stretches of something that is counted. Pure functions.
#ifndef ENGINE_BASE_RANGE_H_
#define ENGINE_BASE_RANGE_H_

#include <cstdint>
#include <vector>

namespace tilewire {

struct Range {
  int64_t begin = 0, size = 0;
};

// `count` things in `parts` ranges whose sizes differ by one at most.
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
