// SPDX-License-Identifier: Apache-2.0
//
// One version of one model: where it lies, its state, and what serves it.
#ifndef SERVICE_MODELS_SERVED_MODEL_H_
#define SERVICE_MODELS_SERVED_MODEL_H_

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "engine/base/precision.h"
#include "engine/model.h"
#include "protos/model_config.pb.h"
#include "service/models/model_config.h"
#include "service/models/served_tensors.h"
#include "service/models/statistics.h"

namespace tilewire::service {

enum class ModelState : uint8_t {
  kLoading,      // not loaded yet: requests for it are to come again
  kArriving,     // tried out or loaded for the first time; clients see it in the index only
  kReady,        // it serves
  kUnavailable,  // it failed to load, or its file was written to while it served
  kUnloading,    // it takes no more requests, and some still run
  kUnloaded,     // it is on disk and not loaded; clients see it in the index only
};
// "LOADING", also of kArriving; as in Triton, what is unloaded is "UNAVAILABLE".
absl::string_view ModelStateName(ModelState state);

// Immutable once it is published.
struct ServedModel {
  std::string name;
  NamedBy named_by = NamedBy::kFolder;
  int64_t version = 1;
  std::string path;    // of the ONNX file; no client gets to see it
  std::string folder;  // of all files of the version; empty: the file stands alone
  // The folder of the labels and settings of all versions: the one above `folder`, or `folder`
  // itself where one folder holds a whole model.
  std::string settings_folder;
  std::string default_file = "model.onnx";  // in `folder`, where the settings name no other
  std::string labels_path;
  std::string config_path;     // of the model's config.pbtxt; empty: the file stands alone
  bool strict_config = false;  // whether settings that are unknown keep it from being served
  // Settings in the place of config.pbtxt; null: the file.
  std::shared_ptr<const inference::ModelConfig> given_config;
  ModelState state = ModelState::kLoading;
  // Why it is kUnavailable: kUnavailable if it will be loaded again by itself, else the error of
  // the load. Of a model that is kReady: why what lies on disk now did not load.
  absl::Status load_status;
  // Whether the files there now are tried out or loaded, to replace `model`, which serves or did.
  bool is_loading_next = false;
  // Whether it serves in the place of a version that is to be served and does not yet, or cannot.
  bool stands_in = false;
  std::shared_ptr<const Model> model;  // set if kReady
  // As they were read, for ModelConfig; set if kReady.
  std::shared_ptr<const inference::ModelConfig> config;
  // The model's tensors as clients see them, which makes their requests the model's.
  ServedTensors tensors;
  std::string labels;  // the lines of the first output's that has any, or of labels.txt; or empty
  std::vector<std::string> output_labels;   // per output of the signature; set if kReady
  int64_t max_batch = 0;                    // the largest batch of a request; 0: no bound
  Precision precision = Precision::kExact;  // that its settings name, or the server's
  // Counts of its requests, and of those for versions that its model does not have: the
  // repository's, whatever is published.
  std::shared_ptr<VersionStatistics> statistics;
  std::shared_ptr<FailureCounts> absent;
};

// Whether it is one of the model's versions for clients: neither unloaded, nor on the way to it,
// nor there for the first time and not loaded yet.
bool IsLive(const ServedModel& served);

// The labels of an output's classes, of a version that is kReady; empty where it has none. They
// live as long as `served`.
std::vector<absl::string_view> LabelsOf(const ServedModel& served, int output);

// Whether requests may run on it. The message names no path.
//   kUnavailable         it is still loading, or will be loaded again
//   kFailedPrecondition  it failed to load
//   kNotFound            it is not live
absl::Status Usable(const ServedModel& served);

// The state's reason as a client reads it: empty if it is ready and what lies on disk is what
// serves.
std::string ReasonOf(const ServedModel& served);

// Runs of the same model on inputs of these shapes take about the same time (WorkTerms::cost_key).
uint64_t CostKey(const ServedModel& served, absl::Span<const InputTensor> inputs);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_SERVED_MODEL_H_
