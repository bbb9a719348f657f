// SPDX-License-Identifier: Apache-2.0
//
// The memory that models, their loads and requests share. A load takes what it needs from requests
// for as long as it lasts, once it is free, and leaves them a quarter of their bound; what a model
// holds once it is loaded leaves them less, so that all together stay within what is granted.
// Thread-compatible: used by the loading thread.
#ifndef SERVICE_MODELS_MODEL_MEMORY_H_
#define SERVICE_MODELS_MODEL_MEMORY_H_

#include <cstdint>
#include <functional>
#include <limits>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/engine.h"
#include "service/models/model_repository.h"
#include "service/models/trial/trial.h"
#include "service/schedule/admission.h"

namespace tilewire::service {

class ModelMemory {
 public:
  struct Bounds {
    int64_t shared = std::numeric_limits<int64_t>::max();  // models, loads and requests together
    int64_t requests = 0;   // as long as models leave as much; at first the admission's bound
    bool is_fixed = false;  // whatever models leave, requests may hold `requests`
    int64_t limit = std::numeric_limits<int64_t>::max();  // all that is granted
    std::string granted;                                  // for people: "512 MB granted by ..."
    std::function<int64_t()> held;                        // what the process holds of it now
    bool is_of_process = false;  // whether another process, such as a trial's, has as much
  };

  // The engine and the admission must outlive this object.
  ModelMemory(Engine* engine, Admission* admission, Bounds bounds);

  // A load that may take `bytes` begins, beside `models`, when TakeRoom() returns true.
  //   kResourceExhausted  the process does not leave as much of what is granted
  absl::Status BeginLoad(const ModelRepository& models, int64_t bytes);
  // The same for a trial in another process, which may take so much; ends with EndLoad().
  TrialMemory ForTrial(const ModelRepository& models, int64_t file_bytes) const;
  absl::Status BeginTrial(const ModelRepository& models, const TrialMemory& memory);
  // Takes what the load that begins needs from requests; false while they hold it themselves.
  bool TakeRoom();
  // Between the steps of a load, which is better ended than the process.
  //   kResourceExhausted  the process holds nearly all that is granted
  absl::Status CheckLoad() const;
  void EndLoad();

  // Requests get what `models`, which hold more with each new shape, leave them; the statistics of
  // each are told what it holds. Logs a change.
  void Update(const ModelRepository& models);

 private:
  static int64_t HeldBy(const ModelRepository& models);
  absl::Status Begin(const ModelRepository& models, absl::string_view what, int64_t bytes);

  Engine* const engine_;
  Admission* const admission_;
  const Bounds bounds_;
  int64_t wanted_ = 0;  // by the load that begins
  int64_t lent_ = 0;    // to the load that runs
  int64_t logged_ = 0;  // what requests were last said to get
};

// The memory of a trial where nothing bounds it.
TrialMemory UnboundedTrial(int64_t file_bytes);

// Estimated from the size of its files: what a model holds, and what its load takes: weights
// packed, and, one tensor at a time, as they lie in the file.
int64_t BytesOfModel(int64_t file_bytes);
int64_t BytesOfLoad(int64_t file_bytes);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_MEMORY_H_
