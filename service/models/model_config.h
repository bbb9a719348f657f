// SPDX-License-Identifier: Apache-2.0
//
// A model's settings, from the config.pbtxt beside its version folders. Each setting is applied, or
// has no effect here, or keeps the model from being served (config_fields.inc), so that no answer
// is another one than the settings ask for. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_CONFIG_H_
#define SERVICE_MODELS_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/precision.h"
#include "protos/model_config.pb.h"
#include "service/models/config_fields.h"

namespace tilewire::service {

// Who has given a model its name: its folder, which the settings have to agree with, or a flag.
enum class NamedBy : uint8_t { kFolder, kFlag };

struct ModelSettings {
  inference::ModelConfig config;
  std::vector<Setting> settings;
};

// The settings in a file, judged; none if `path` does not exist. All that are refused are among the
// `settings`. Messages name no path.
//   kInvalidArgument  it is not the text of a ModelConfig; the message names the line
//   kOutOfRange       larger than 64 KB
absl::StatusOr<ModelSettings> ReadSettings(const std::string& path, const std::string& model,
                                           NamedBy named_by = NamedBy::kFolder);

// The same for settings that did not come from a file.
std::vector<Setting> JudgeSettings(const inference::ModelConfig& config, const std::string& model,
                                   NamedBy named_by = NamedBy::kFolder);

// Whether a model may be served with them: OK, or kInvalidArgument with every setting that is
// refused, and its reason. `strict`: one that is unknown is refused too.
absl::Status Verdict(const std::vector<Setting>& settings, bool strict);

// "no effect: instance_group, optimization; unknown: fps", of what is not applied; empty if all is.
std::string SettingsRemark(const std::vector<Setting>& settings);

// The versions to be served, out of those on disk, which are ascending. `latest`: how many of the
// highest, where the settings say nothing; 0: all.
std::vector<int64_t> WantedVersions(const inference::ModelConfig& config,
                                    const std::vector<int64_t>& on_disk, uint32_t latest);

// How exactly the model computes; nullopt where the settings do not say.
std::optional<Precision> PrecisionOf(const inference::ModelConfig& config);

// Whether it is the name of a file in a folder, and not a path out of it.
bool IsFileName(const std::string& name);
// The file of each version; `unnamed`: the model's where the settings name none.
std::string ModelFile(const inference::ModelConfig& config, const std::string& unnamed);
// The file with the labels of the output of this name, or, for an empty name, of the first one that
// has any; "" where the settings name none.
std::string LabelsFile(const inference::ModelConfig& config, const std::string& output);
// A line for each output whose labels' file is not in `folder`: its classes have no names.
std::vector<std::string> MissingLabels(const inference::ModelConfig& config,
                                       const std::string& folder);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_CONFIG_H_
