// SPDX-License-Identifier: Apache-2.0
//
// The table of settings (config_fields.inc), and what of it a model's settings use. Pure functions.
#ifndef SERVICE_MODELS_CONFIG_FIELDS_H_
#define SERVICE_MODELS_CONFIG_FIELDS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "protos/model_config.pb.h"

namespace tilewire::service {

enum class SettingClass : uint8_t {
  kApplied,
  kNoEffect,  // no answer depends on it
  kRefused,   // it keeps the model from being served
  kUnknown,   // a name that no table has: a warning, or refused
};
absl::string_view SettingClassName(SettingClass effect);  // "no effect"

// One setting of one model.
struct Setting {
  std::string name;  // "input.reshape", "parameters 'precision'"
  SettingClass effect;
  std::string text;
};

// The rows of the settings that are there, in the order of the message's fields. Values are not
// judged, but for parameters' keys: one that is nearly one of this server's is refused.
std::vector<Setting> SettingsIn(const inference::ModelConfig& config);

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_CONFIG_FIELDS_H_
