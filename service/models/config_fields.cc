// SPDX-License-Identifier: Apache-2.0
#include "service/models/config_fields.h"

#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/types/span.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "service/wire/edit_distance.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// A key that is this far from one of this server's is taken for a slip of the pen.
constexpr int kNearlyTheSame = 2;

struct ConfigField {
  absl::string_view path;  // "input.reshape", or the key of a parameter
  SettingClass effect;
  absl::string_view text;
};

constexpr ConfigField kFields[] = {
#define CONFIG_FIELD(path, effect, text) {path, SettingClass::effect, text},
#include "service/models/config_fields.inc"
};
constexpr ConfigField kParameters[] = {
#define CONFIG_PARAMETER(key, effect, text) {key, SettingClass::effect, text},
#include "service/models/config_fields.inc"
};

// Null where no row has just this path.
const ConfigField* Row(absl::Span<const ConfigField> rows, absl::string_view path) {
  const auto found = std::find_if(rows.begin(), rows.end(),
                                  [&](const ConfigField& row) { return row.path == path; });
  return found == rows.end() ? nullptr : &*found;
}

bool HasRowsBelow(absl::string_view path) {
  return std::any_of(std::begin(kFields), std::end(kFields), [&](const ConfigField& row) {
    return absl::StartsWith(row.path, path) && absl::StartsWith(row.path.substr(path.size()), ".");
  });
}

void Add(std::vector<Setting>* settings, Setting setting) {
  const bool there = std::any_of(settings->begin(), settings->end(),
                                 [&](const Setting& one) { return one.name == setting.name; });
  if (!there) settings->push_back(std::move(setting));
}

// One of this server's own, not of ONNX Runtime's.
bool IsOurs(const ConfigField& row) { return row.effect != SettingClass::kNoEffect; }

Setting ParameterSetting(const std::string& key) {
  std::string name = absl::StrCat("parameters ", Quoted(key));
  if (const ConfigField* row = Row(kParameters, key)) {
    return {std::move(name), row->effect, std::string(row->text)};
  }
  for (const ConfigField& row : kParameters) {
    if (!IsOurs(row) || EditDistance(row.path, key) > kNearlyTheSame) continue;
    return {std::move(name), SettingClass::kRefused,
            absl::StrCat("no parameter is called so; is '", row.path, "' meant?")};
  }
  return {std::move(name), SettingClass::kUnknown,
          "neither this server nor ONNX Runtime has such a parameter"};
}

void AddFields(const std::string& above, const Message& message, std::vector<Setting>* settings);

void AddField(const std::string& path, const Message& message, const FieldDescriptor& field,
              std::vector<Setting>* settings) {
  if (const ConfigField* row = Row(kFields, path)) {
    Add(settings, {path, row->effect, std::string(row->text)});
  }
  if (!HasRowsBelow(path)) return;
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated())
    return AddFields(path, reflection.GetMessage(message, &field), settings);
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    AddFields(path, reflection.GetRepeatedMessage(message, &field, i), settings);
  }
}

void AddFields(const std::string& above, const Message& message, std::vector<Setting>* settings) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    const std::string path = absl::StrCat(above, above.empty() ? "" : ".", field->name());
    if (path != "parameters") AddField(path, message, *field, settings);
  }
}

}  // namespace

absl::string_view SettingClassName(SettingClass effect) {
  switch (effect) {
    case SettingClass::kApplied:
      return "applied";
    case SettingClass::kNoEffect:
      return "no effect";
    case SettingClass::kRefused:
      return "refused";
    case SettingClass::kUnknown:
      break;
  }
  return "unknown";
}

std::vector<Setting> SettingsIn(const inference::ModelConfig& config) {
  std::vector<Setting> settings;
  AddFields("", config, &settings);
  std::vector<std::string> keys;
  for (const auto& [key, parameter] : config.parameters()) keys.push_back(key);
  std::sort(keys.begin(), keys.end());  // a map of protobuf has no order of its own
  for (const std::string& key : keys) settings.push_back(ParameterSetting(key));
  return settings;
}

}  // namespace tilewire::service
