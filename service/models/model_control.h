// SPDX-License-Identifier: Apache-2.0
//
// Requests to load or to unload one of the models that a server holds. Both take as long as a load
// or the longest run, and tell their end by a call, so that no thread of gRPC waits. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_CONTROL_H_
#define SERVICE_MODELS_MODEL_CONTROL_H_

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "protos/model_config.pb.h"

namespace tilewire::service {

// A file that a client sends, <version>/<name> of its model.
struct UploadedFile {
  int64_t version = 0;
  std::string name;  // of letters, digits, '.', '_' and '-', at most 128; neither "." nor ".."
  std::string bytes;
};

class ModelControl {
 public:
  // Called exactly once: by the caller's own thread where the request is refused, else by the
  // loading thread, which it must not hold up. The message names no path.
  using Done = std::function<void(const absl::Status&)>;

  virtual ~ModelControl() = default;

  // Whether models are loaded by request (--model_control).
  virtual bool TakesRequests() const = 0;

  // Loads the versions of the model that its settings want, and returns when each of them serves or
  // has failed. What is loaded and unchanged is OK at once; what serves goes on until it is
  // replaced. `config` stands in the place of the model's config.pbtxt for this load; null: the
  // file. With `files`, which `config` comes with, the model is these, and no file of the
  // repositories; they are stored until another load replaces them or the model is unloaded.
  //   kFailedPrecondition  models are not loaded by request (--model_control); or the load failed,
  //                        with its reason
  //   kInvalidArgument     no name, or a setting in `config` that is refused
  //   kNotFound            no such model in the repositories
  //   kResourceExhausted   the files do not fit into MostUploadBytes() or on the disk
  //   kCancelled           the server ends
  virtual void Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
                    std::vector<UploadedFile> files, Done done) = 0;
  // The bytes that the files of all uploads may have together; 0: none are taken.
  virtual int64_t MostUploadBytes() const = 0;

  // Takes no more requests for any version of the model (they are NOT_FOUND) and returns when the
  // last run has ended and the memory is back. What runs is not cancelled.
  //   kFailedPrecondition  models are not loaded by request (--model_control)
  //   kInvalidArgument     no name
  //   kNotFound            no version of the model is loaded
  //   kCancelled           the server ends
  virtual void Unload(const std::string& name, Done done) = 0;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_CONTROL_H_
