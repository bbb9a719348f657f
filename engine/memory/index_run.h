// SPDX-License-Identifier: Apache-2.0
//
// Indices of one dimension as runs of equal steps: what slices, pads, repeats and gathers take.
#ifndef ENGINE_MEMORY_INDEX_RUN_H_
#define ENGINE_MEMORY_INDEX_RUN_H_

#include <cstdint>

namespace tilewire {

// `count` indices start, start + step, ...; a negative start stands for `count` elements that are
// not in the source.
struct IndexRun {
  int64_t start = 0, step = 1, count = 0;
  bool operator==(const IndexRun&) const = default;
};

}  // namespace tilewire

#endif  // ENGINE_MEMORY_INDEX_RUN_H_
