// SPDX-License-Identifier: Apache-2.0
//
// Whether the other hardware thread of this core computes, as far as matrix tiles (AMX) tell. The
// two threads share the physical tiles: while the other thread is idle, a burst of loads and
// products on eight tiles takes 16 cycles per product; while it is busy, more than twice as many,
// and code on tiles slows down as much. A figure of such code therefore says nothing without the
// state it was taken in, and the neighbour may be another guest of the same machine.
//
//   CoreProbe probe;
//   const CoreState before = probe.Now();
//   ...                                       // what is measured
//   const CoreState state = Both(before, probe.Now());
//
// Thread-compatible; a probe is of the thread that calls it. Without tiles nothing tells.
#ifndef TESTS_BENCH_CORE_STATE_H_
#define TESTS_BENCH_CORE_STATE_H_

#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "engine/jit/generator.h"

namespace tilewire::bench {

enum class CoreState : uint8_t {
  kUnknown = 0,  // the CPU has no tiles, or the system grants none
  kQuiet,        // at most kQuietCycles per product
  kBusy,         // at least kBusyCycles
  kBetween,      // the state changed meanwhile, or is neither
};

class CoreProbe {
 public:
  static constexpr double kQuietCycles = 20, kBusyCycles = 42;

  CoreProbe();
  // Takes about 40 microseconds.
  CoreState Now() const;

 private:
  std::unique_ptr<const jit::Generator> products_, cycles_;  // null without tiles
};

// The state over the time between two looks.
inline CoreState Both(CoreState before, CoreState after) {
  return before == after ? before : CoreState::kBetween;
}

// The times of both sides in pairs of neighbouring runs, by the state of each pair.
struct PairedTimes {
  std::vector<double> ours, theirs, ratios;  // ratios: theirs over ours
  void Add(double our_time, double their_time) {
    ours.push_back(our_time);
    theirs.push_back(their_time);
    ratios.push_back(their_time / our_time);
  }
};
using TimesByState = std::map<CoreState, PairedTimes>;

// Without the pairs in neither state, unless there are no others.
TimesByState WithoutBetween(TimesByState times);

// "quiet", "busy", "" for kUnknown: the column of a table.
const char* CoreStateName(CoreState state);

}  // namespace tilewire::bench

#endif  // TESTS_BENCH_CORE_STATE_H_
