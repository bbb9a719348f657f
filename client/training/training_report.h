// SPDX-License-Identifier: Apache-2.0
//
// The outcome of a run of training: as lines of text, as JSON, and as one page that needs nothing
// else. Pure functions; names of files and parameters are shown without what a terminal or a
// browser would obey.
#ifndef CLIENT_TRAINING_TRAINING_REPORT_H_
#define CLIENT_TRAINING_TRAINING_REPORT_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/training/training_run.h"
#include "engine/trainer.h"

namespace tilewire::client {

struct TrainingReport {
  std::string model, written;  // files; `written` is empty if there is none
  std::vector<std::pair<std::string, std::string>> settings;  // as the flags have them
  std::vector<std::string> notes;                             // the trainer's
  std::vector<ParameterSpec> parameters;
  std::vector<std::string> classes;  // names of class folders, by number; of other examples none
  int64_t epochs = 0;                // that were asked for
  absl::Status failure;  // of the training, or of writing to --output; then `written` is elsewhere
  TrainingRecord record;
};

// "epoch 3/10  update 45 of 120  loss 0.1234  812 examples/s  12 s left"
std::string TrainingProgressText(const TrainingRecord& so_far, int64_t epochs);
// "epoch 3: loss 0.1234, held out: loss 0.2345, accuracy 0.9722 (35 of 36)"
std::string EpochText(const EpochFigures& figures);
std::string HeldOutText(const HeldOut& held_out);  // what follows "held out: "

// Signs that the training did harm, a sentence each: a loss that ended above where it began.
std::vector<std::string> TrainingWarnings(const TrainingRecord& record);

// The chart of the loss and the summary.
std::string TrainingText(const TrainingReport& report);
std::string TrainingJson(const TrainingReport& report);
std::string TrainingHtml(const TrainingReport& report);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_TRAINING_REPORT_H_
