// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_load.h"

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "engine/base/precision.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "service/models/model_config.h"
#include "service/models/repository_scan.h"
#include "service/models/text_file.h"
#include "service/models/within_memory.h"
#include "service/observe/steady_time.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

// Whether a version's file, which lies in `folder` or in a folder there, is there, and what may be
// meant if it is not. A file that cannot be looked at is left to who reads it.
absl::Status CheckIsThere(const fs::path& path, const fs::path& folder) {
  std::error_code error;
  if (fs::exists(path, error) || error) return absl::OkStatus();
  const std::string name = path.filename().string();
  if (fs::is_directory(path.parent_path(), error) && path.parent_path() != folder) {
    const std::string outer = path.parent_path().filename().string();
    return absl::NotFoundError(absl::StrCat("the version's '", outer, "' is a folder without '",
                                            name, "': a model of several files is '", outer, "/",
                                            name, "' with the others beside it"));
  }
  const auto others = OnnxFiles(path.parent_path().string());
  if (!others.ok() || others->empty())
    return absl::NotFoundError(absl::StrCat("the version's folder holds no '", name, "'"));
  return absl::NotFoundError(
      absl::StrCat("the version's folder holds '", others->front(), "', but no '", name,
                   "': rename it, or name it in config.pbtxt (default_model_filename)"));
}

// The lines of the labels' file of this name beside the versions.
std::string LabelsIn(const ServedModel& served, const std::string& file) {
  return file.empty() ? "" : ReadTextFile((fs::path(served.settings_folder) / file).string());
}

// The output whose classes labels.txt names: the only output or, of several, the only one of rank
// 2; end() where none stands out.
std::vector<TensorSpec>::const_iterator OutputOfLabels(const std::vector<TensorSpec>& outputs) {
  const auto is_row_of_classes = [](const TensorSpec& spec) { return spec.dims.size() == 2; };
  if (outputs.size() == 1) return outputs.begin();
  if (absl::c_count_if(outputs, is_row_of_classes) != 1) return outputs.end();
  return absl::c_find_if(outputs, is_row_of_classes);
}

// Labels that the settings name; without any, those of labels.txt. Files that are named and missing
// are lines in the log.
void ReadLabels(ServedModel* served) {
  for (const std::string& missing : MissingLabels(*served->config, served->settings_folder))
    spdlog::warn("model '{}' version {}: {}", served->name, served->version, missing);
  const std::string first = LabelsFile(*served->config, "");
  served->labels = first.empty() ? ReadTextFile(served->labels_path) : LabelsIn(*served, first);
  const std::vector<TensorSpec>& outputs = served->model->signature().outputs;
  served->output_labels.clear();
  for (const TensorSpec& output : outputs)
    served->output_labels.push_back(LabelsIn(*served, LabelsFile(*served->config, output.name)));
  const auto labelled = OutputOfLabels(outputs);
  if (first.empty() && labelled != outputs.end())
    served->output_labels[labelled - outputs.begin()] = served->labels;
}

// Reads the settings and says in a line of the log which of them have no effect or are unknown.
absl::Status ReadConfig(ServedModel* served) {
  ModelSettings read;
  if (served->given_config != nullptr) {
    read = {*served->given_config,
            JudgeSettings(*served->given_config, served->name, served->named_by)};
  } else {
    ABSL_ASSIGN_OR_RETURN(read, ReadSettings(served->config_path, served->name, served->named_by));
  }
  ABSL_RETURN_IF_ERROR(Verdict(read.settings, served->strict_config));
  const std::string remark = SettingsRemark(read.settings);
  if (!remark.empty()) {
    const bool has_unknown = absl::c_any_of(read.settings, [](const Setting& setting) {
      return setting.effect == SettingClass::kUnknown;
    });
    spdlog::log(has_unknown ? spdlog::level::warn : spdlog::level::info,
                "model '{}' version {}: config.pbtxt: {} (`tilewire check` says why)", served->name,
                served->version, remark);
  }
  served->config = std::make_shared<const inference::ModelConfig>(std::move(read.config));
  return absl::OkStatus();
}

// The model, with its settings applied.
absl::StatusOr<std::shared_ptr<const Model>> LoadConfigured(ServedModel* served, Engine* engine,
                                                            const LoadOptions& options) {
  ABSL_RETURN_IF_ERROR(ReadConfig(served));
  const inference::ModelConfig& config = *served->config;
  if (!served->folder.empty()) served->path = OnnxFileOf(*served, config);
  ABSL_RETURN_IF_ERROR(CheckIsThere(served->path, served->folder));
  served->max_batch = config.max_batch_size();
  LoadOptions configured = options;
  configured.precision = PrecisionOf(config).value_or(engine->options().precision);
  configured.name = absl::StrCat("model '", served->name, "' version ", served->version);
  served->precision = *configured.precision;
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const Model> model,
                        engine->LoadModel(served->path, configured));
  ABSL_ASSIGN_OR_RETURN(served->tensors, ServedTensors::Create(config, model->signature()));
  return model;
}

}  // namespace

ServedModel NotLoaded(const ServedModel& found, const absl::Status& why) {
  ServedModel served = found;
  served.state = ModelState::kUnavailable;
  served.load_status = absl::Status(
      why.code(), Utf8Text(absl::StrReplaceAll(why.message(), {{served.path, "model.onnx"}})));
  if (absl::IsCancelled(why)) return served;
  const std::string text = why.ToString(absl::StatusToStringMode::kWithNoExtraData);
  spdlog::error("model '{}' version {}: {}{}", served.name, served.version, text,
                absl::StrContains(text, served.path) ? "" : absl::StrCat(" (", served.path, ")"));
  return served;
}

absl::Status ReadVersion(Engine* engine, const LoadOptions& options, ServedModel* served) {
  ABSL_ASSIGN_OR_RETURN(served->model,
                        WithinMemory([&] { return LoadConfigured(served, engine, options); }));
  return absl::OkStatus();
}

ServedModel LoadVersion(const ServedModel& found, Engine* engine, const LoadOptions& options) {
  ServedModel served = found;
  const absl::Time start = SteadyNow();
  const absl::Status read = ReadVersion(engine, options, &served);
  if (!read.ok()) return NotLoaded(served, read);
  served.state = ModelState::kReady;
  served.stands_in = false;
  served.load_status = absl::OkStatus();
  ReadLabels(&served);
  spdlog::info("model '{}' version {}: loaded in {} ms", served.name, served.version,
               absl::ToInt64Milliseconds(SteadyNow() - start));
  return served;
}

}  // namespace tilewire::service
