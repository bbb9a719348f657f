// SPDX-License-Identifier: Apache-2.0
//
// Loops over items that are too short to be pieces of work: threads take `at_once` of them at a
// time. Like Team::ParallelFor() but for that.
#ifndef ENGINE_THREADING_RANGES_H_
#define ENGINE_THREADING_RANGES_H_

#include <algorithm>
#include <cstdint>

#include "engine/base/checked_math.h"
#include "engine/threading/arena.h"

namespace tilewire::threading {

// Calls body(first, end) for ranges of the items from 0 to `count` - 1, which together are all.
template <typename Body>
void ParallelForRanges(const Team& team, int64_t count, int64_t at_once, const Body& body) {
  team.ParallelFor(DivUp(count, at_once), [&](int64_t range) {
    const int64_t first = range * at_once;
    body(first, std::min(count, first + at_once));
  });
}

// Calls body(item) for every item.
template <typename Body>
void ParallelForItems(const Team& team, int64_t count, int64_t at_once, const Body& body) {
  ParallelForRanges(team, count, at_once, [&](int64_t first, int64_t end) {
    for (int64_t item = first; item < end; ++item) body(item);
  });
}

// How many items of `size` make up a piece of work of about `piece`; at least 1.
constexpr int64_t ItemsAtOnce(int64_t piece, int64_t size) {
  return std::max<int64_t>(1, piece / std::max<int64_t>(1, size));
}

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_RANGES_H_
