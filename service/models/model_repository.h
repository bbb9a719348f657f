// SPDX-License-Identifier: Apache-2.0
//
// The models that this server serves, by name and version. All are loaded before the first request.
// Immutable once opened: any thread may ask.
#ifndef SERVICE_MODELS_MODEL_REPOSITORY_H_
#define SERVICE_MODELS_MODEL_REPOSITORY_H_

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/engine.h"

namespace tilewire::service {

// One version of one model, loaded or not.
struct ServedModel {
  std::string name;
  int64_t version = 1;
  absl::Status load_status;  // not OK: `model` is null
  std::shared_ptr<const Model> model;
  std::string labels;  // the lines of labels.txt; empty if there is none
};

class ModelRepository {
 public:
  // `directory` holds <model>/<integer version>/model.onnx and, if wanted, <model>/labels.txt. A
  // model that does not load is kept with its error; the others serve.
  //   kNotFound          no such directory, or no model in it
  //   kPermissionDenied  it may not be read
  static absl::StatusOr<std::unique_ptr<ModelRepository>> OpenDirectory(
      const std::string& directory, Engine* engine);

  // One file; .../<model>/<version>/model.onnx gives name and version, any other path its stem and
  // version 1.
  //   kNotFound, and the errors of Engine::LoadModel()
  static absl::StatusOr<std::unique_ptr<ModelRepository>> OpenFile(const std::string& path,
                                                                   Engine* engine);

  // `version` empty: the highest. Never null; its load_status may be an error.
  //   kNotFound         no such model or version
  //   kInvalidArgument  no name, or a version that is no integer
  absl::StatusOr<std::shared_ptr<const ServedModel>> Find(absl::string_view name,
                                                          absl::string_view version) const;
  // Find(), and the model has loaded.
  //   kFailedPrecondition  it failed to load
  absl::StatusOr<std::shared_ptr<const ServedModel>> FindLoaded(absl::string_view name,
                                                                absl::string_view version) const;

  std::vector<std::string> Names() const;
  std::vector<int64_t> Versions(absl::string_view name) const;  // ascending
  bool AllLoaded() const;

 private:
  using ModelVersions = std::map<int64_t, std::shared_ptr<const ServedModel>>;

  // Every version in a model's folder.
  void LoadVersions(const std::string& directory, Engine* engine);
  void Load(const std::string& name, int64_t version, const std::string& path,
            const std::string& labels_path, Engine* engine);

  std::map<std::string, ModelVersions, std::less<>> models_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_REPOSITORY_H_
