// SPDX-License-Identifier: Apache-2.0
//
// A run of each model on zeros and a batch of one, so that the first request finds its memory in
// place. Live profiles are of requests and do not count it. A model's plan, and all that may fail,
// is there before: it is made when the model is loaded.
#ifndef SERVICE_MODELS_WARM_UP_H_
#define SERVICE_MODELS_WARM_UP_H_

#include <atomic>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/models/model_repository.h"
#include "service/schedule/admission.h"
#include "service/schedule/dispatcher.h"

namespace tilewire::service {

// The dims of a model's inputs.
using Shapes = std::vector<Dims>;

// The dims that WarmUp() runs on: open ones stay -1, but for the batch. None if a rank is open.
Shapes BatchOfOne(const ModelSignature& signature);

// Runs the model of `served` once on zeros of these shapes, so that its plan for them is there.
// Does nothing if the model does not take them, or if they are large; where the run fails, the log
// says so.
void WarmUpOn(const ServedModel& served, const Shapes& shapes, const RunOptions& options);

// Runs the model of `served` once. Does nothing, and returns false, if the model leaves more open
// than the batch, or asks for large inputs. Where the run fails, the log says so.
bool WarmUp(const ServedModel& served, const RunOptions& options);

// Warms up models that serve already, on a thread of low priority, one after the other: each
// step of a run begins while no request waits or runs, or after kLongestPause. A run ends early
// where a request has done its work: it has run on the same shape, or needs the memory; and where
// its model has been withdrawn. Thread-safe.
class BackgroundWarmUp {
 public:
  // All that is pointed to must outlive this object.
  BackgroundWarmUp(const ModelRepository* models, Dispatcher* dispatcher, Admission* admission);
  ~BackgroundWarmUp();  // waits for the step that runs

  // Warms up the version that is served now, soon.
  void Add(const std::string& name, int64_t version) ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr absl::Duration kLongestPause = absl::Milliseconds(100);

  void Body() ABSL_LOCKS_EXCLUDED(mutex_);
  void Run(const ModelRepository::Served& served);

  const ModelRepository* const models_;
  Dispatcher* const dispatcher_;
  Admission* const admission_;
  std::atomic<bool> stopping_{false};
  threading::Mutex mutex_;
  std::deque<ModelRepository::Served> waiting_ ABSL_GUARDED_BY(mutex_);
  threading::BackgroundThread thread_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_WARM_UP_H_
