// SPDX-License-Identifier: Apache-2.0
//
// The work that a tuning does whatever it finds, and how many examples its time has room for. With
// c examples of the choice, h held out, and a trial of n examples that takes load + n run:
//
//   check(c, h)  a trial of c (all layers bf16), four models in turns, twice two models in turns,
//                3 h run and 6 load
//   least(c, h)  c run (the exact model), 3 c run (ranges), a trial of c (all layers int8) and
//                check(c, h)
//
// A value type of pure functions.
#ifndef ENGINE_TUNING_TIME_PLAN_H_
#define ENGINE_TUNING_TIME_PLAN_H_

#include <cstdint>

#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace tilewire::tuning {

struct ExampleCounts {
  int64_t chosen = 0, held_out = 0;
};

class TimePlan {
 public:
  static constexpr int kTurns = 15, kLeastTurns = 3;  // that are counted of models in turns
  // Fewer examples than these, or than there are, tell too little to begin with.
  static constexpr int64_t kLeastExamples = 16;

  // How long the finals of a choice are at least, unless MostOfTurns() is less; of small models, as
  // others take longer for kTurns.
  static constexpr absl::Duration kTimeOfTurns = absl::Milliseconds(500);

  // `load`: to write and load a file and to plan its first run; `run`: of one example.
  TimePlan(absl::Duration time, absl::Duration load, absl::Duration run)
      : time_(time), load_(load), run_(run) {}

  // At least a second: small models need no more, however little is asked for.
  static absl::Duration AtLeast(absl::Duration time);
  // After so long, models are not run in further turns.
  static absl::Duration MostOfTurns(absl::Duration time) { return AtLeast(time) / 20; }

  // As many of `all` examples as `time` has room to observe, with all tensors; `trial` is the time
  // of a trial of all. 0: the time is too short for kLeastExamples.
  static int64_t Observable(int64_t all, absl::Duration trial, absl::Duration time);

  absl::Duration Trial(int64_t examples) const;
  absl::Duration Check(const ExampleCounts& counts) const;
  absl::Duration Least(const ExampleCounts& counts) const;

  // `all`, or as large a share of both as half of `left` has room for: the other half is for
  // choosing; kLeastExamples of both, or all, where only the whole of it has. Where the plan's time
  // is a second or less, `left` counts as one, too, however long loading took.
  //   kDeadlineExceeded  not even for the least; with the time that would be enough, with
  //                      what is gone of it by now
  absl::StatusOr<ExampleCounts> Fit(const ExampleCounts& all, absl::Duration left) const;

 private:
  absl::Duration Turns(int models) const;

  absl::Duration time_, load_, run_;
};

}  // namespace tilewire::tuning

#endif  // ENGINE_TUNING_TIME_PLAN_H_
