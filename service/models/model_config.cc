// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_config.h"

#include <algorithm>
#include <filesystem>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/text_format.h"
#include "service/models/text_file.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

using inference::ModelConfig;

constexpr char kPrecision[] = "precision";

// The first error and the line in which it lies; the names of unknown settings.
class ReadProblems final : public google::protobuf::io::ErrorCollector {
 public:
  void AddError(int line, int, const std::string& message) override {
    if (error_.empty()) error_ = absl::StrCat("config.pbtxt, line ", line + 1, ": ", message);
  }
  // The parser's only warnings are of names that the message does not have.
  void AddWarning(int line, int, const std::string& message) override {
    const size_t end = message.rfind('"');
    const size_t begin = end == std::string::npos || end == 0 ? end : message.rfind('"', end - 1);
    const std::string name = begin == std::string::npos || begin == end
                                 ? message
                                 : message.substr(begin + 1, end - begin - 1);
    unknown_.push_back(
        {name, SettingClass::kUnknown, absl::StrCat("line ", line + 1, ": no such setting")});
  }
  const std::string& error() const { return error_; }
  const std::vector<Setting>& unknown() const { return unknown_; }

 private:
  std::string error_;
  std::vector<Setting> unknown_;
};

// Turns the settings that have a bad value into refused ones.
class Judge {
 public:
  explicit Judge(std::vector<Setting>* settings) : settings_(settings) {}

  void Refuse(const std::string& name, absl::string_view why) {
    const auto found = std::find_if(settings_->begin(), settings_->end(),
                                    [&name](const Setting& one) { return one.name == name; });
    Setting refused{name, SettingClass::kRefused, std::string(why)};
    if (found == settings_->end()) {
      settings_->push_back(std::move(refused));
    } else {
      *found = std::move(refused);
    }
  }
  // The setting may be absent.
  void NoEffect(const std::string& name, std::string why) {
    for (Setting& setting : *settings_)
      if (setting.name == name) setting = {name, SettingClass::kNoEffect, std::move(why)};
  }
  void OneOf(const char* name, const std::string& value, const std::set<std::string>& allowed) {
    if (value.empty() || allowed.count(value) != 0) return;
    Refuse(name, absl::StrCat(Quoted(value), " is not '", absl::StrJoin(allowed, "' or '"), "'"));
  }

 private:
  std::vector<Setting>* const settings_;
};

void JudgeFiles(const ModelConfig& config, Judge* judge) {
  if (!IsFileName(config.default_model_filename()))
    judge->Refuse("default_model_filename", "it is not a file in the version's folder");
  for (const inference::ModelOutput& output : config.output()) {
    if (!IsFileName(output.label_filename()))
      judge->Refuse("output.label_filename", "it is not a file in the model's folder");
  }
}

template <typename Tensors>
void JudgeDims(const char* kind, const Tensors& tensors, Judge* judge) {
  const auto is_bad = [](int64_t dim) { return dim < -1; };
  std::set<std::string> names;
  for (const auto& tensor : tensors) {
    const std::string what = absl::StrCat(Quoted(tensor.name()), ": ");
    if (!names.insert(tensor.name()).second) judge->Refuse(kind, what + "declared twice");
    if (std::any_of(tensor.dims().begin(), tensor.dims().end(), is_bad))
      judge->Refuse(kind, what + "a dim is below -1");
    const auto& shape = tensor.reshape().shape();
    if (std::any_of(shape.begin(), shape.end(), is_bad))
      judge->Refuse(absl::StrCat(kind, ".reshape"), what + "a dim is below -1");
  }
}

}  // namespace

bool IsFileName(const std::string& name) {
  return !absl::StrContains(name, '/') && name != "." && name != "..";
}

std::vector<Setting> JudgeSettings(const ModelConfig& config, const std::string& model,
                                   NamedBy named_by) {
  std::vector<Setting> settings = SettingsIn(config);
  Judge judge(&settings);
  if (named_by == NamedBy::kFolder) {
    judge.OneOf("name", config.name(), {model});
  } else {
    judge.NoEffect("name", absl::StrCat("the flag names it ", Quoted(model)));
  }
  judge.OneOf("platform", config.platform(), {"onnx", "onnxruntime_onnx"});
  judge.OneOf("backend", config.backend(), {"onnxruntime", "tilewire"});
  if (config.max_batch_size() < 0) judge.Refuse("max_batch_size", "it is below 0");
  JudgeFiles(config, &judge);
  JudgeDims("input", config.input(), &judge);
  JudgeDims("output", config.output(), &judge);
  const auto precision = config.parameters().find(kPrecision);
  if (precision != config.parameters().end()) {
    const absl::Status status = ParsePrecision(precision->second.string_value()).status();
    if (!status.ok()) judge.Refuse("parameters 'precision'", status.message());
  }
  return settings;
}

absl::StatusOr<ModelSettings> ReadSettings(const std::string& path, const std::string& model,
                                           NamedBy named_by) {
  const absl::StatusOr<std::string> text = TextOf(path);
  if (!text.ok()) {
    return absl::Status(text.status().code(),
                        absl::StrCat("config.pbtxt: ", text.status().message()));
  }
  ReadProblems problems;
  google::protobuf::TextFormat::Parser parser;
  parser.RecordErrorsTo(&problems);
  parser.AllowUnknownField(true);
  ModelSettings read;
  if (!parser.ParseFromString(*text, &read.config))
    return absl::InvalidArgumentError(problems.error());
  read.settings = JudgeSettings(read.config, model, named_by);
  read.settings.insert(read.settings.end(), problems.unknown().begin(), problems.unknown().end());
  return read;
}

absl::Status Verdict(const std::vector<Setting>& settings, bool strict) {
  std::string all;
  for (const Setting& setting : settings) {
    const bool refused = setting.effect == SettingClass::kRefused ||
                         (strict && setting.effect == SettingClass::kUnknown);
    if (!refused) continue;
    absl::StrAppend(&all, all.empty() ? "config.pbtxt: " : "; ", setting.name, ": ", setting.text);
  }
  return all.empty() ? absl::OkStatus() : absl::InvalidArgumentError(all);
}

std::string SettingsRemark(const std::vector<Setting>& settings) {
  std::string remark;
  for (const SettingClass effect : {SettingClass::kNoEffect, SettingClass::kUnknown}) {
    std::vector<std::string> names;
    for (const Setting& setting : settings) {
      if (setting.effect == effect) names.push_back(setting.name);
    }
    if (names.empty()) continue;
    absl::StrAppend(&remark, remark.empty() ? "" : "; ", SettingClassName(effect), ": ",
                    absl::StrJoin(names, ", "));
  }
  return remark;
}

std::vector<int64_t> WantedVersions(const ModelConfig& config, const std::vector<int64_t>& on_disk,
                                    uint32_t latest) {
  const inference::ModelVersionPolicy& policy = config.version_policy();
  std::vector<int64_t> wanted = on_disk;
  if (policy.has_specific()) {
    const auto& named = policy.specific().versions();
    std::erase_if(wanted, [&named](int64_t version) {
      return std::find(named.begin(), named.end(), version) == named.end();
    });
    return wanted;
  }
  size_t most = policy.has_all() ? 0 : latest;
  if (policy.has_latest()) most = std::max<uint32_t>(policy.latest().num_versions(), 1);
  if (most > 0 && wanted.size() > most) wanted.erase(wanted.begin(), wanted.end() - most);
  return wanted;
}

std::optional<Precision> PrecisionOf(const ModelConfig& config) {
  const auto found = config.parameters().find(kPrecision);
  if (found == config.parameters().end()) return std::nullopt;
  return ParsePrecision(found->second.string_value()).value();
}

std::string ModelFile(const ModelConfig& config, const std::string& unnamed) {
  return config.default_model_filename().empty() ? unnamed : config.default_model_filename();
}

std::string LabelsFile(const ModelConfig& config, const std::string& output) {
  for (const inference::ModelOutput& one : config.output()) {
    if (!one.label_filename().empty() && (output.empty() || one.name() == output))
      return one.label_filename();
  }
  return "";
}

std::vector<std::string> MissingLabels(const ModelConfig& config, const std::string& folder) {
  std::vector<std::string> missing;
  for (const inference::ModelOutput& output : config.output()) {
    const std::string& file = output.label_filename();
    std::error_code error;
    if (file.empty() || std::filesystem::exists(std::filesystem::path(folder) / file, error) ||
        error)
      continue;
    missing.push_back(absl::StrCat("output '", output.name(), "': label_filename '", file,
                                   "' is not in the model's folder; its classes have no names"));
  }
  return missing;
}

}  // namespace tilewire::service
