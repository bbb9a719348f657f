// SPDX-License-Identifier: Apache-2.0
//
// A loop whose bodies need memory of their own, such as a part of a scratchpad.
#ifndef ENGINE_THREADING_SLOTS_H_
#define ENGINE_THREADING_SLOTS_H_

#include <algorithm>
#include <atomic>
#include <cstdint>

#include "engine/threading/arena.h"
#include "engine/threading/stop.h"

namespace tilewire::threading {

// Calls body(piece, slot) for every piece below `pieces`, on up to `slots` threads of the team,
// with 0 <= slot < `slots`; no two threads use one slot at the same time. A thread that claims a
// slot takes pieces until none remain. As in Team::ParallelFor, helping threads leave when
// tasks wait, and a stopped loop skips the pieces that have not begun.
template <typename Body>
void ParallelForInSlots(const Team& team, int64_t pieces, int64_t slots, const Body& body) {
  std::atomic<int64_t> next{0};
  team.ParallelFor(std::min<int64_t>(slots, team.threads()), [&](int64_t slot) {
    for (int64_t i = next.fetch_add(1); i < pieces; i = next.fetch_add(1)) {
      body(i, slot);
      if (Stopped() || (slot != 0 && TasksWait())) return;
    }
  });
}

}  // namespace tilewire::threading

#endif  // ENGINE_THREADING_SLOTS_H_
