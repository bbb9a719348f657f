// SPDX-License-Identifier: Apache-2.0
//
// One version of one model: where it lies, its state, and what serves it.
#ifndef SERVICE_MODELS_SERVED_MODEL_H_
#define SERVICE_MODELS_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/precision.h"
#include "engine/model.h"

namespace tilewire::service {

enum class ModelState : uint8_t {
  kLoading,      // not loaded yet
  kReady,        // it serves
  kUnavailable,  // it failed to load, or its file was written to while it served
};
absl::string_view ModelStateName(ModelState state);  // "LOADING"

// Immutable once it is published.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  std::string path;    // of the ONNX file; no client gets to see it
  std::string folder;  // of all files of the version; empty: the file stands alone
  // The folder of the labels and settings of all versions: the one above `folder`, or `folder`
  // itself where one folder holds a whole model.
  std::string settings_folder;
  std::string default_file = "model.onnx";  // in `folder`, where the settings name no other
  std::string labels_path;
  std::string config_path;  // of the model's config.pbtxt; empty: the file stands alone
  ModelState state = ModelState::kLoading;
  // Why it is kUnavailable: kUnavailable if it will be loaded again by itself, else the error of
  // the load. Of a model that is kReady: why what lies on disk now did not load.
  absl::Status load_status;
  std::shared_ptr<const Model> model;       // set if kReady
  std::string labels;                       // the lines of labels.txt; empty if there is none
  int64_t max_batch = 0;                    // the largest batch of a request; 0: no bound
  Precision precision = Precision::kExact;  // that its settings name, or the server's
};

// Whether requests may run on it. The message names no path.
//   kUnavailable         it is still loading, or will be loaded again
//   kFailedPrecondition  it failed to load
absl::Status Usable(const ServedModel& served);

// The state's reason as a client reads it: empty if it is ready and what lies on disk is what
// serves.
std::string ReasonOf(const ServedModel& served);

// Runs of the same model on inputs of these shapes take about the same time (WorkTerms::cost_key).
uint64_t CostKey(const ServedModel& served, absl::Span<const InputTensor> inputs);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_SERVED_MODEL_H_
