// SPDX-License-Identifier: Apache-2.0
//
// The models that this server serves, by name and version: found on disk at once, loaded later and
// one by one, while those that are ready already serve. Thread-safe: readers share an immutable
// snapshot, and the loading thread publishes the next.
#ifndef SERVICE_MODELS_MODEL_REPOSITORY_H_
#define SERVICE_MODELS_MODEL_REPOSITORY_H_

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/engine.h"

namespace tilewire::service {

enum class ModelState : uint8_t {
  kLoading,      // it has not been loaded yet
  kReady,        // it serves
  kUnavailable,  // it failed to load
};
absl::string_view ModelStateName(ModelState state);  // "LOADING"

// One version of one model. Immutable.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  std::string path;  // of the ONNX file; no client gets to see it
  std::string labels_path;
  ModelState state = ModelState::kLoading;
  absl::Status load_status;            // why it is kUnavailable
  std::shared_ptr<const Model> model;  // null unless kReady
  std::string labels;                  // the lines of labels.txt; empty if there is none
};

class ModelRepository {
 public:
  using Served = std::shared_ptr<const ServedModel>;

  ModelRepository() : snapshot_(std::make_shared<const Snapshot>()) {}  // empty

  // Lists the models that can be served; none is loaded. `directory` holds
  // <model>/<integer version>/model.onnx and, if wanted, <model>/labels.txt. Names that begin with
  // a dot are skipped.
  //   kNotFound          no such directory, or no model in it
  //   kPermissionDenied  it may not be read
  static absl::StatusOr<std::unique_ptr<ModelRepository>> ScanDirectory(
      const std::string& directory);
  // One file; .../<model>/<version>/model.onnx gives name and version, any other path its stem and
  // version 1.
  //   kNotFound
  static absl::StatusOr<std::unique_ptr<ModelRepository>> ScanFile(const std::string& path);

  // Scan...(), then LoadAll(). A model of a directory that does not load is kept with its error; of
  // OpenFile() it is the result.
  static absl::StatusOr<std::unique_ptr<ModelRepository>> OpenDirectory(
      const std::string& directory, Engine* engine);
  static absl::StatusOr<std::unique_ptr<ModelRepository>> OpenFile(const std::string& path,
                                                                   Engine* engine);

  // Loads what is kLoading, one model after the other; `changed` is called after each, and `stop`
  // asked before each. One thread at a time.
  void LoadAll(Engine* engine, const std::function<void()>& changed = nullptr,
               const std::function<bool()>& stop = nullptr);

  // `version` empty: the highest that is ready, or the highest if none is. Never null.
  //   kNotFound         no such model or version
  //   kInvalidArgument  no name, or a version that is not an integer
  absl::StatusOr<Served> Find(absl::string_view name, absl::string_view version) const;
  // Find(), and the model is ready.
  //   the errors of Usable()
  absl::StatusOr<Served> FindLoaded(absl::string_view name, absl::string_view version) const;
  //   kUnavailable         it is still loading
  //   kFailedPrecondition  it failed to load
  static absl::Status Usable(const ServedModel& served);

  std::vector<std::string> Names() const;
  std::vector<int64_t> Versions(absl::string_view name) const;  // ascending
  std::vector<Served> All() const;                              // by name, then version
  // A model is ready when one of its versions is.
  bool AllReady() const;
  bool AnyReady() const;

 private:
  using ModelVersions = std::map<int64_t, Served>;
  using Snapshot = std::map<std::string, ModelVersions, std::less<>>;

  std::shared_ptr<const Snapshot> snapshot() const { return snapshot_.load(); }
  // Every version in a model's folder.
  void ScanVersions(const std::string& directory);
  void Publish(ServedModel served);
  static ServedModel Loaded(const ServedModel& wanted, Engine* engine);

  std::atomic<std::shared_ptr<const Snapshot>> snapshot_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_REPOSITORY_H_
