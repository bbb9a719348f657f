// SPDX-License-Identifier: Apache-2.0
//
// The file that a training ends with.
#ifndef CLIENT_TRAINING_LEARNED_FILE_H_
#define CLIENT_TRAINING_LEARNED_FILE_H_

#include <string>

#include "absl/status/status.h"
#include "client/training/training_run.h"
#include "engine/trainer.h"

namespace tilewire::client {

struct LearnedFile {
  std::string path;      // empty: nothing was written
  absl::Status failure;  // of the training, or of writing to the place that was asked for
};

// Writes what was learned to `path`, and where that fails into a new folder among the system's
// temporary files, because the parameters end with the process. Writes nothing after a training
// that failed, had no update, or whose parameters are ruined: if the last half of its updates was
// skipped, or the held-out loss has become infinite or NaN.
LearnedFile WriteLearned(const Trainer& trainer, const TrainingRecord& record,
                         const std::string& path);

}  // namespace tilewire::client

#endif  // CLIENT_TRAINING_LEARNED_FILE_H_
