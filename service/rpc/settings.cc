// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/settings.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "engine/base/status_macros.h"
#include "service/observe/log_fields.h"
#include "service/observe/log_levels.h"
#include "service/trace/trace_sampler.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using LogValue = inference::LogSettingsRequest::SettingValue;
using LogAnswer = inference::LogSettingsResponse::SettingValue;
// Higher levels are the same.
constexpr uint32_t kMostVerbose = 2;

using TraceValues = google::protobuf::RepeatedPtrField<std::string>;

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
    levels->verbose = std::min(value.uint32_param(), kMostVerbose);
    return absl::OkStatus();
  }
  if (name == "log_file" || name == "log_format") {
    return InvalidSetting(name, "it cannot be changed over the wire");
  }
  return InvalidSetting(name,
                        "unknown; known are 'log_error', 'log_warning', 'log_info' and "
                        "'log_verbose_level'");
}

// Settings by name, as text.
using Told = std::map<std::string, std::string>;

// One line for those that a client has changed; none where it has changed nothing.
void LogChange(const char* rpc, const Told& before, const Told& after,
               absl::FunctionRef<RequestOrigin()> origin_of) {
  std::vector<std::string> changes;
  for (const auto& [name, value] : after) {
    const std::string& old = before.at(name);
    if (old != value) changes.push_back(absl::StrCat(name, " from ", old, " to ", value));
  }
  if (changes.empty()) return;
  const RequestOrigin origin = origin_of();
  const std::string changed = absl::StrJoin(changes, ", ");
  LogLine(spdlog::level::info,
          absl::StrCat("settings changed by ", rpc, " id ", origin.id, " from ", origin.peer, ": ",
                       changed),
          {.texts = {{"method", rpc},
                     {"peer", origin.peer},
                     {"request_id", origin.id},
                     {"trace_id", origin.trace_id},
                     {"changed", changed}},
           .numbers = {}});
}

Told TextOf(const LogLevels& levels) {
  const auto text = [](bool on) { return on ? "true" : "false"; };
  return {{"log_error", text(levels.error)},
          {"log_warning", text(levels.warning)},
          {"log_info", text(levels.info)},
          {"log_verbose_level", absl::StrCat(levels.verbose)}};
}

// Sets the levels and writes the line of the change where either the old or the new ones show it.
absl::Status SetLevels(const LogLevels& levels, absl::FunctionRef<RequestOrigin()> origin_of) {
  ABSL_RETURN_IF_ERROR(CheckLogLevels(levels));
  const LogLevels before = CurrentLogLevels();
  if (before.info) LogChange("LogSettings", TextOf(before), TextOf(levels), origin_of);
  SetLogLevels(levels);
  if (!before.info) LogChange("LogSettings", TextOf(before), TextOf(levels), origin_of);
  return absl::OkStatus();
}

using LogTold = google::protobuf::Map<std::string, LogAnswer>;

// Every setting of the log as it is now.
LogTold LogSettings() {
  const LogLevels levels = CurrentLogLevels();
  LogTold settings;
  settings["log_error"].set_bool_param(levels.error);
  settings["log_warning"].set_bool_param(levels.warning);
  settings["log_info"].set_bool_param(levels.info);
  settings["log_verbose_level"].set_uint32_param(levels.verbose);
  settings["log_file"].set_string_param("");  // standard error
  settings["log_format"].set_string_param("default");
  return settings;
}

// Whether a client sends back what it was told.
bool Stays(const LogTold& told, const std::string& name, const LogValue& value) {
  const auto found = told.find(name);
  return found != told.end() && found->second.SerializeAsString() == value.SerializeAsString();
}

absl::Status ReadLevel(const TraceValues& values, TraceChange* change) {
  constexpr absl::string_view kName = "trace_level";
  for (const std::string& value : values) {
    if (value == "TENSORS") {
      return InvalidSetting(kName, "'TENSORS' would write clients' data, and is not served");
    }
    if (value != "OFF" && value != "TIMESTAMPS") {
      return InvalidSetting(kName, absl::StrCat(Quoted(value), " is not 'OFF' or 'TIMESTAMPS'"));
    }
    const bool on = value == "TIMESTAMPS";
    if (change->on.value_or(on) != on) {
      return InvalidSetting(kName, "'OFF' and 'TIMESTAMPS' exclude each other");
    }
    change->on = on;
  }
  return absl::OkStatus();
}

// The one number, from `least` to `most`.
template <typename Number>
absl::Status ReadNumber(absl::string_view name, const TraceValues& values, int64_t least,
                        int64_t most, std::optional<Number>* number) {
  int64_t read = 0;
  const bool is_one = values.size() == 1 && absl::SimpleAtoi(values[0], &read);
  if (!is_one || read < least || read > most) {
    return InvalidSetting(
        name, absl::StrCat(values.size() == 1 ? Quoted(values[0]) : "several values",
                           ", where one number from ", least, " to ", most, " is expected"));
  }
  *number = static_cast<Number>(read);
  return absl::OkStatus();
}

absl::Status ReadTraceValue(absl::string_view name, const TraceValues& values,
                            TraceChange* change) {
  if (name == "trace_level") return ReadLevel(values, change);
  if (name == "trace_rate") {
    return ReadNumber(name, values, 1, std::numeric_limits<uint32_t>::max(), &change->rate);
  }
  return ReadNumber(name, values, TraceTerms::kNoEnd, std::numeric_limits<int64_t>::max(),
                    &change->count);
}

// A setting without a value gets the one of the start.
void ClearTraceValue(absl::string_view name, const TraceTerms& first, TraceChange* change) {
  if (name == "trace_level") change->on = first.on;
  if (name == "trace_rate") change->rate = first.rate;
  if (name == "trace_count") change->count = first.count;
}

absl::Status CheckTraceName(absl::string_view name) {
  if (name == "trace_file" || name == "trace_mode" || name == "log_frequency") {
    return InvalidSetting(name, "it cannot be changed over the wire");
  }
  if (name == "trace_level" || name == "trace_rate" || name == "trace_count") {
    return absl::OkStatus();
  }
  return InvalidSetting(name, "unknown; known are 'trace_level', 'trace_rate' and 'trace_count'");
}

// Where traces are written nowhere, only that they are off can be asked for.
absl::Status CheckHasTracer(const Tracer* tracer, absl::string_view name,
                            const TraceChange& change) {
  const bool stays_off = change.on.has_value() && !*change.on;
  if (tracer != nullptr || stays_off) return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("setting ", Quoted(name),
                   ": this server writes traces nowhere; start it with --trace_file=PATH or "
                   "--otlp_endpoint=HOST:PORT"));
}

// Every setting of traces as it is now.
Told TraceSettings(const Tracer* tracer) {
  const TraceTerms terms = tracer != nullptr ? tracer->sampler().terms() : TraceTerms{.on = false};
  return {{"trace_level", terms.on ? "TIMESTAMPS" : "OFF"},
          {"trace_rate", absl::StrCat(terms.rate)},
          {"trace_count", absl::StrCat(terms.count)},
          {"log_frequency", "0"},
          {"trace_file", tracer != nullptr ? tracer->file() : ""},
          {"trace_mode", tracer != nullptr ? tracer->mode() : "chrome"}};
}

// Whether a client sends back what it was told.
bool Stays(const Told& told, const std::string& name, const TraceValues& values) {
  const auto found = told.find(name);
  return found != told.end() && values.size() == 1 && values[0] == found->second;
}

absl::Status ReadChanges(const Tracer* tracer, const inference::TraceSettingRequest& request,
                         TraceChange* changes) {
  const TraceTerms first = tracer != nullptr ? tracer->sampler().first() : TraceTerms{.on = false};
  const Told told = TraceSettings(tracer);
  for (const auto& [name, setting] : request.settings()) {
    if (Stays(told, name, setting.value())) continue;
    ABSL_RETURN_IF_ERROR(CheckTraceName(name));
    if (setting.value().empty()) {
      ClearTraceValue(name, first, changes);
      continue;
    }
    if (!request.model_name().empty()) {
      return InvalidSetting(name,
                            "it holds for all models, and cannot be another for one of them; "
                            "send it without a model's name");
    }
    TraceChange one;
    ABSL_RETURN_IF_ERROR(ReadTraceValue(name, setting.value(), &one));
    ABSL_RETURN_IF_ERROR(CheckHasTracer(tracer, name, one));
    if (one.on) changes->on = one.on;
    if (one.rate) changes->rate = one.rate;
    if (one.count) changes->count = one.count;
  }
  return absl::OkStatus();
}

// The settings that the request names: the count of traces goes down by itself meanwhile.
Told OnlyNamed(const inference::TraceSettingRequest& request, const Told& all) {
  Told named;
  for (const auto& [name, value] : all) {
    if (request.settings().contains(name)) named[name] = value;
  }
  return named;
}

}  // namespace

absl::Status AnswerLogSettings(const SettingsClient& client,
                               const inference::LogSettingsRequest& request,
                               inference::LogSettingsResponse* response) {
  if (!request.settings().empty()) {
    ABSL_RETURN_IF_ERROR(CheckMayChange(client.open));
    LogLevels levels = CurrentLogLevels();
    const LogTold told = LogSettings();
    for (const auto& [name, value] : request.settings()) {
      if (Stays(told, name, value)) continue;
      ABSL_RETURN_IF_ERROR(ChangeLog(name, value, &levels));
    }
    ABSL_RETURN_IF_ERROR(SetLevels(levels, client.origin));
  }
  *response->mutable_settings() = LogSettings();
  return absl::OkStatus();
}

absl::Status AnswerTraceSetting(const SettingsClient& client, Tracer* tracer,
                                const inference::TraceSettingRequest& request,
                                inference::TraceSettingResponse* response) {
  if (!request.settings().empty()) {
    ABSL_RETURN_IF_ERROR(CheckMayChange(client.open));
    TraceChange changes;
    ABSL_RETURN_IF_ERROR(ReadChanges(tracer, request, &changes));
    // One model has nothing of its own that could be cleared.
    const bool of_all = request.model_name().empty();
    if (tracer != nullptr && of_all) {
      const Told before = OnlyNamed(request, TraceSettings(tracer));
      tracer->sampler().Change(changes);
      LogChange("TraceSetting", before, OnlyNamed(request, TraceSettings(tracer)), client.origin);
    }
  }
  for (const auto& [name, value] : TraceSettings(tracer)) {
    (*response->mutable_settings())[name].add_value(value);
  }
  return absl::OkStatus();
}

}  // namespace tilewire::service
