// SPDX-License-Identifier: Apache-2.0
//
// A model's settings, from the config.pbtxt beside its version folders. What this server
// understands is applied; any other setting is refused by name, so that no model is served in
// another way than its settings say. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_CONFIG_H_
#define SERVICE_MODELS_MODEL_CONFIG_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/precision.h"
#include "engine/model.h"
#include "protos/model_config.pb.h"

namespace tilewire::service {

// No settings if `path` does not exist. Messages name no path.
//   kInvalidArgument  a setting that is not understood, has a value that is not supported, or names
//                     another model than `model`; the message names the setting
//   kOutOfRange       larger than 64 KB
absl::StatusOr<inference::ModelConfig> ReadModelConfig(const std::string& path,
                                                       const std::string& model);

// The versions to be served, out of those on disk, which are ascending.
std::vector<int64_t> WantedVersions(const inference::ModelConfig& config,
                                    const std::vector<int64_t>& on_disk);

// The tensors that the settings declare are the model's.
//   kInvalidArgument  they are not; the message says which
absl::Status CheckSignature(const inference::ModelConfig& config, const ModelSignature& signature);

// How exactly the model computes; nullopt where the settings do not say.
std::optional<Precision> PrecisionOf(const inference::ModelConfig& config);

// The files of the model that the settings name; `unnamed`: the model's where they name none.
std::string ModelFile(const inference::ModelConfig& config, const std::string& unnamed);
std::string LabelsFile(const inference::ModelConfig& config);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_CONFIG_H_
