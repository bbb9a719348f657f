// SPDX-License-Identifier: Apache-2.0
//
// A model that proves itself: a process of its own reads it, plans it and runs it once, before this
// one opens its file. What ends that process, holds it up or takes too much memory leaves this one,
// and the models that it serves, as they are.
//
// The process is this binary again (trial_process.h), with the same instruction sets and precision,
// one thread, low priority, an end to its memory, and no descriptor but a socket to here. It
// dies with the thread that began it.
#ifndef SERVICE_MODELS_TRIAL_TRIAL_H_
#define SERVICE_MODELS_TRIAL_TRIAL_H_

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/engine.h"
#include "service/models/served_model.h"

namespace tilewire::service {

// The memory that a trial may take beyond what the process begins with.
struct TrialMemory {
  int64_t load_bytes = 0;  // for the model, and all that loading it takes
  int64_t run_bytes = 0;   // for the tensors of a run; one that needs more does not take place
};

// Thread-compatible.
class Trial {
 public:
  virtual ~Trial() = default;

  // Tries `found` out: on a batch of one or, where more is open, on `shapes`, the dims of each
  // input. Sets its path to the file that was read. `between` is called every 20 ms or more often;
  // an error of it ends the trial. Where the system starts no process, the log says so, and the
  // result is OK.
  //   the errors of LoadVersion(), as if it had been loaded here
  //   kInternal           the process died; the message says of what and how far it came
  //   kDeadlineExceeded   it took too long
  //   kResourceExhausted  it needed more than `memory`, or the system ended it
  //   what `between` returned
  virtual absl::Status Run(const std::vector<Dims>& shapes, const TrialMemory& memory,
                           absl::FunctionRef<absl::Status()> between, ServedModel* found) const = 0;
};

class ProcessTrial final : public Trial {
 public:
  struct Settings {
    EngineOptions engine;
    absl::Duration longest = absl::Minutes(2);
    // Another binary, in tests.
    std::string program = "/proc/self/exe";
  };

  explicit ProcessTrial(Settings settings) : settings_(std::move(settings)) {}
  absl::Status Run(const std::vector<Dims>& shapes, const TrialMemory& memory,
                   absl::FunctionRef<absl::Status()> between, ServedModel* found) const override;

 private:
  const Settings settings_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_TRIAL_TRIAL_H_
