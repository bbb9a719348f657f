// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/settings.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "service/observe/log_levels.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using LogValue = inference::LogSettingsRequest::SettingValue;
using TraceValue = inference::TraceSettingRequest::SettingValue;

absl::Status CheckMayChange(const OpenRights& open) {
  return CheckRight("to change settings", Right::kSettings, open);
}

absl::Status InvalidSetting(absl::string_view name, absl::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("setting ", Quoted(name), ": ", why));
}

absl::Status ReadSwitch(absl::string_view name, const LogValue& value, bool* on) {
  if (value.parameter_choice_case() != LogValue::kBoolParam) {
    return InvalidSetting(name, "it is not true or false");
  }
  *on = value.bool_param();
  return absl::OkStatus();
}

absl::Status ChangeLog(absl::string_view name, const LogValue& value, LogLevels* levels) {
  if (name == "log_error") return ReadSwitch(name, value, &levels->error);
  if (name == "log_warning") return ReadSwitch(name, value, &levels->warning);
  if (name == "log_info") return ReadSwitch(name, value, &levels->info);
  if (name == "log_verbose_level") {
    if (value.parameter_choice_case() != LogValue::kUint32Param) {
      return InvalidSetting(name, "it is not an integer");
    }
    levels->verbose = value.uint32_param();
    return absl::OkStatus();
  }
  if (name == "log_file" || name == "log_format") {
    return InvalidSetting(name, "it cannot be changed over the wire");
  }
  return InvalidSetting(name,
                        "unknown; known are 'log_error', 'log_warning', 'log_info' and "
                        "'log_verbose_level'");
}

void TellLog(inference::LogSettingsResponse* response) {
  const LogLevels levels = CurrentLogLevels();
  auto& settings = *response->mutable_settings();
  settings["log_error"].set_bool_param(levels.error);
  settings["log_warning"].set_bool_param(levels.warning);
  settings["log_info"].set_bool_param(levels.info);
  settings["log_verbose_level"].set_uint32_param(levels.verbose);
  settings["log_file"].set_string_param("");  // standard error
  settings["log_format"].set_string_param("default");
}

// An empty value clears a setting, which gives it the value that it has anyway.
absl::Status CheckTrace(absl::string_view name, const TraceValue& value) {
  if (name == "trace_file" || name == "trace_mode" || name == "log_frequency") {
    return InvalidSetting(name, "it cannot be changed over the wire");
  }
  const bool is_level = name == "trace_level";
  if (!is_level && name != "trace_rate" && name != "trace_count") {
    return InvalidSetting(name, "unknown; known are 'trace_level', 'trace_rate' and 'trace_count'");
  }
  for (const std::string& one : value.value()) {
    if (is_level && one == "OFF") continue;
    if (is_level && one != "TIMESTAMPS") {
      return InvalidSetting(name, absl::StrCat(Quoted(one), " is not 'OFF' or 'TIMESTAMPS'"));
    }
    return absl::FailedPreconditionError(
        absl::StrCat("setting ", Quoted(name), ": this server writes no traces"));
  }
  return absl::OkStatus();
}

void TellTrace(inference::TraceSettingResponse* response) {
  constexpr std::pair<const char*, const char*> kSettings[] = {
      {"trace_level", "OFF"}, {"trace_rate", "1000"}, {"trace_count", "-1"},
      {"log_frequency", "0"}, {"trace_file", ""},     {"trace_mode", "triton"}};
  for (const auto& [name, value] : kSettings) {
    (*response->mutable_settings())[name].add_value(value);
  }
}

}  // namespace

absl::Status AnswerLogSettings(const OpenRights& open, const inference::LogSettingsRequest& request,
                               inference::LogSettingsResponse* response) {
  if (!request.settings().empty()) {
    ABSL_RETURN_IF_ERROR(CheckMayChange(open));
    LogLevels levels = CurrentLogLevels();
    for (const auto& [name, value] : request.settings()) {
      ABSL_RETURN_IF_ERROR(ChangeLog(name, value, &levels));
    }
    ABSL_RETURN_IF_ERROR(SetLogLevels(levels));
  }
  TellLog(response);
  return absl::OkStatus();
}

absl::Status AnswerTraceSetting(const OpenRights& open,
                                const inference::TraceSettingRequest& request,
                                inference::TraceSettingResponse* response) {
  if (!request.settings().empty()) {
    ABSL_RETURN_IF_ERROR(CheckMayChange(open));
    for (const auto& [name, value] : request.settings()) {
      ABSL_RETURN_IF_ERROR(CheckTrace(name, value));
    }
  }
  TellTrace(response);
  return absl::OkStatus();
}

}  // namespace tilewire::service
