// SPDX-License-Identifier: Apache-2.0
//
// Epochs of updates over a data set, each followed by a look at the examples that are held out.
#ifndef CLIENT_TRAINING_TRAINING_RUN_H_
#define CLIENT_TRAINING_TRAINING_RUN_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/time/time.h"
#include "client/training/dataset.h"
#include "client/training/element_check.h"
#include "client/training/example_order.h"
#include "client/training/held_out.h"
#include "engine/trainer.h"

namespace tilewire::client {

struct RunSettings {
  int64_t epochs = 1;
  int64_t batch = 32;  // examples of an update; the last one of an epoch has what is left
  JudgedOutput judged;
  ExampleSources sources;
  bool recalibrates = false;  // statistics of normalizations are taken anew after the last update
  const std::atomic<bool>* stop = nullptr;  // once true, ends the run early
};

int64_t UpdatesOfEpoch(int64_t trained_examples, int64_t batch);

struct EpochFigures {
  int64_t epoch = 0;  // from 1
  double loss = 0;    // mean over what counts in updates that were not skipped; NaN if all were
  double rate = 0;    // of its last update
  int64_t skipped = 0;
  std::optional<HeldOut> held_out;  // after it
};

struct TrainingRecord {
  int64_t updates_of_epoch = 0;
  std::vector<double> losses;  // of each update; NaN if it was skipped
  int64_t examples = 0;        // that these had
  std::optional<HeldOut> before;
  std::vector<EpochFigures> epochs;  // that were finished
  bool is_stopped = false;
  absl::Status failure;              // of the trainer, which ended the run
  absl::Duration elapsed, updating;  // in all; in updates alone

  int64_t updates() const { return static_cast<int64_t>(losses.size()); }
  int64_t skipped() const;
  int64_t skipped_at_end() const;  // in a row, of the last updates
  double examples_per_s() const;   // of the updates
  // The last look at what is held out, that before training where no epoch was finished.
  std::optional<HeldOut> held_out() const;
};

// Called on the thread of RunTraining().
struct TrainingEvents {
  std::function<void(const TrainingRecord& so_far)> updated;  // after each update
  std::function<void(const EpochFigures&)> epoch_ended;
};

// Asks the trainer for all that the run needs, so that it ends before it begins where an update of
// so many examples, the last one of an epoch, which may be smaller, or a recalibration cannot be,
// or an element of an example is none that the model takes.
//   the trainer's errors, with the number of examples, and CheckElements()'s
absl::Status PrepareTraining(Trainer* trainer, const Dataset& dataset, const ExampleOrder& order,
                             const RunSettings& settings);

// A run that is stopped, or that fails, is a record of what was before: no update of it was applied
// in part.
TrainingRecord RunTraining(Trainer* trainer, const Dataset& dataset, const ExampleOrder& order,
                           const RunSettings& settings, const TrainingEvents& events);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_TRAINING_RUN_H_
