// SPDX-License-Identifier: Apache-2.0
#include "client/tool/check_repository.h"

#include <cstdio>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "client/amount_text.h"
#include "client/tool/command.h"
#include "engine/engine.h"
#include "engine/onnx/model_check.h"
#include "engine/tuner.h"
#include "engine/tuning_text.h"
#include "service/models/model_config.h"
#include "service/models/served_tensors.h"

namespace tilewire::client {
namespace {

using service::ServedModel;
using service::Setting;

struct CheckedVersion {
  std::string model;
  int64_t version = 1;
  reader::ModelCheck file;
  std::vector<Setting> settings;
  std::vector<std::string> reasons;  // that keep it from being served; none: it would be
  std::vector<std::string> notes;    // on what it would be served without
};

std::vector<TensorSpec> SpecsOf(const std::vector<reader::CheckedTensor>& tensors) {
  std::vector<TensorSpec> specs;
  for (const reader::CheckedTensor& tensor : tensors) {
    TensorSpec spec{.name = tensor.name, .any_rank = !tensor.has_shape};
    if (const auto type = service::TypeNamed(tensor.type)) spec.type = *type;
    for (const std::string& dim : tensor.dims) {
      int64_t size = 0;
      spec.dims.push_back(absl::SimpleAtoi(dim, &size) ? size : -1);
    }
    specs.push_back(std::move(spec));
  }
  return specs;
}

CheckedVersion CheckVersion(const ServedModel& served) {
  CheckedVersion checked{.model = served.name, .version = served.version};
  const auto read = service::ReadSettings(served.config_path, served.name);
  inference::ModelConfig config;
  if (read.ok()) {
    checked.settings = read->settings;
    config = read->config;
    checked.notes = service::MissingLabels(config, served.settings_folder);
    for (const Setting& setting : read->settings) {
      if (const absl::Status status = service::Verdict({setting}, served.strict_config);
          !status.ok())
        checked.reasons.push_back(std::string(status.message()));
    }
  } else {
    checked.reasons.push_back(std::string(read.status().message()));
  }
  const std::string file = service::OnnxFileOf(served, config);
  checked.file = reader::CheckModel(file);
  for (const std::string& lack : checked.file.lacks) checked.reasons.push_back(lack);
  for (const std::string& leftover : checked.file.leftovers) checked.notes.push_back(leftover);
  const CheckedTuning tuning = CheckTuningOf(file);
  if (!tuning.text.empty()) checked.notes.push_back(absl::StrCat("tuned by ", tuning.text));
  if (!tuning.problem.empty()) checked.reasons.push_back(tuning.problem);
  if (!checked.file.status.ok()) return checked;
  const ModelSignature signature{SpecsOf(checked.file.inputs), SpecsOf(checked.file.outputs)};
  const auto tensors = service::ServedTensors::Create(config, signature);
  if (!tensors.ok()) checked.reasons.push_back(std::string(tensors.status().message()));
  return checked;
}

void PrintVersion(const CheckedVersion& checked) {
  absl::PrintF("%-7s  %s version %d", checked.reasons.empty() ? "serves" : "REFUSED",
               ShownText(checked.model), checked.version);
  if (checked.file.opset != 0)
    absl::PrintF("  opset %d, %d nodes", checked.file.opset, checked.file.nodes);
  absl::PrintF("\n");
  for (const Setting& setting : checked.settings) {
    absl::PrintF("  %-10s %s: %s\n", service::SettingClassName(setting.effect),
                 ShownText(setting.name), ShownText(setting.text));
  }
  for (const std::string& note : checked.notes)
    absl::PrintF("  %-10s %s\n", "note", ShownText(note));
  for (const std::string& reason : checked.reasons)
    absl::PrintF("  %-10s %s\n", "kept out", ShownText(reason));
}

nlohmann::json VersionJson(const CheckedVersion& checked) {
  nlohmann::json settings = nlohmann::json::array();
  for (const Setting& setting : checked.settings) {
    settings.push_back({{"name", setting.name},
                        {"class", std::string(service::SettingClassName(setting.effect))},
                        {"text", setting.text}});
  }
  return {{"model", checked.model},
          {"version", checked.version},
          {"serves", checked.reasons.empty()},
          {"settings", std::move(settings)},
          {"kept_out", checked.reasons},
          {"notes", checked.notes},
          {"opset", checked.file.opset},
          {"nodes", checked.file.nodes}};
}

}  // namespace

CheckedTuning CheckTuningOf(const std::string& path) {
  const auto facts = CheckTuning(path);
  // Other errors are those of the file, whose own check tells more.
  const std::string message(facts.status().message());
  if (!facts.ok()) return {.problem = absl::StartsWith(message, kTuningFile) ? message : ""};
  if (!facts->has_value()) return {};
  return {.text = FactsText(**facts)};
}

int CheckRepository(const std::string& folder, const RepositoryCheckOptions& options) {
  std::vector<std::string> remarks;
  service::ScanOptions scan = options.scan;
  scan.remark = [&remarks](const std::string& remark) { remarks.push_back(remark); };
  absl::StatusOr<std::vector<ServedModel>> found = service::ScanDirectory(folder, scan);
  if (absl::IsNotFound(found.status())) {
    // The folder of one model, as --model takes it.
    std::vector<std::string> none_in_repository;
    none_in_repository.swap(remarks);
    if (auto one = service::ScanFolder(folder, "", scan); one.ok()) {
      found = std::move(one);
    } else {
      remarks.swap(none_in_repository);
    }
  }
  if (!found.ok()) {
    for (const std::string& remark : remarks) absl::FPrintF(stderr, "%s\n", ShownText(remark));
    return Refuse(found.status());
  }
  nlohmann::json list = nlohmann::json::array();
  std::set<std::string> models, refused;
  for (const ServedModel& served : *found) {
    const CheckedVersion checked = CheckVersion(served);
    models.insert(served.name);
    if (!checked.reasons.empty()) refused.insert(served.name);
    if (options.json) {
      list.push_back(VersionJson(checked));
    } else {
      PrintVersion(checked);
    }
  }
  if (options.json) {
    absl::PrintF("%s\n", list.dump(2, ' ', false, nlohmann::json::error_handler_t::replace));
  } else {
    for (const std::string& remark : remarks) absl::PrintF("%-7s  %s\n", "note", ShownText(remark));
    absl::PrintF("%d of %d models would be served\n", models.size() - refused.size(),
                 models.size());
  }
  return refused.empty() ? 0 : 1;
}

}  // namespace tilewire::client
