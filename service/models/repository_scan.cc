// SPDX-License-Identifier: Apache-2.0
#include "service/models/repository_scan.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/models/model_config.h"
#include "service/models/text_file.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

bool IsHidden(const fs::path& path) { return absl::StartsWith(path.filename().string(), "."); }

// In order of name.
absl::StatusOr<std::vector<fs::path>> Entries(const fs::path& directory) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error)) {
    entries.push_back(it->path());
  }
  if (error) {
    return absl::ErrnoToStatus(error.value(),
                               absl::StrCat("cannot read the folder '", directory.string(), "'"));
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

// Erases the versions that the model's settings leave out. Settings that cannot be read leave none
// out: each version then tells why it does not load.
void KeepWanted(const fs::path& model, std::map<int64_t, ServedModel>* versions) {
  const auto config = ReadModelConfig((model / "config.pbtxt").string(), model.filename().string());
  if (!config.ok()) return;
  std::vector<int64_t> numbers;
  for (const auto& [number, served] : *versions) numbers.push_back(number);
  const std::vector<int64_t> wanted = WantedVersions(*config, numbers);
  std::erase_if(*versions, [&wanted](const auto& version) {
    return !std::binary_search(wanted.begin(), wanted.end(), version.first);
  });
  if (versions->empty() && !numbers.empty()) {
    spdlog::warn("{}: skipped, its version_policy names no version that is there", model.string());
  }
}

// Every version in a model's folder that its settings want.
void ScanVersions(const fs::path& model, std::vector<ServedModel>* found) {
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(model);
  if (!entries.ok()) {
    spdlog::error("{}: skipped, {}", model.string(), entries.status().ToString());
    return;
  }
  std::map<int64_t, ServedModel> versions;
  for (const fs::path& entry : *entries) {
    ServedModel served;
    if (!ParseVersion(entry.filename().string(), &served.version)) continue;
    served.name = model.filename().string();
    served.folder = entry.string();
    served.path = (entry / "model.onnx").string();
    served.labels_path = (model / "labels.txt").string();
    served.config_path = (model / "config.pbtxt").string();
    versions[served.version] = std::move(served);
  }
  if (versions.empty()) {
    spdlog::warn("{}: skipped, it has no folder of a version such as {}", model.string(),
                 (model / "1" / "model.onnx").string());
  }
  KeepWanted(model, &versions);
  for (auto& [number, served] : versions) found->push_back(std::move(served));
}

}  // namespace

bool ParseVersion(absl::string_view text, int64_t* version) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  return digits && absl::SimpleAtoi(text, version);
}

absl::StatusOr<std::vector<ServedModel>> ScanDirectory(const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("model repository '", directory, "' is not a directory"));
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<fs::path> models, Entries(directory));
  std::vector<ServedModel> found;
  for (const fs::path& model : models) {
    if (!fs::is_directory(model, error) || IsHidden(model)) continue;
    if (!IsUtf8(model.filename().string())) {
      spdlog::warn("{}: skipped, its name is not UTF-8", model.string());
      continue;
    }
    ScanVersions(model, &found);
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "model repository '", directory,
        "' holds no <model>/<version>/model.onnx, such as digits/1/model.onnx; for one file use "
        "--model=FILE"));
  }
  return found;
}

absl::StatusOr<std::vector<ServedModel>> ScanFile(const std::string& path) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return absl::NotFoundError(absl::StrCat("model '", path, "' does not exist"));
  }
  if (!fs::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("model '", path, "' is not a regular file"));
  }
  const fs::path file = fs::absolute(path, error);
  ServedModel served;
  served.name = file.stem().string();
  served.path = path;
  fs::path labels = file.parent_path() / "labels.txt";
  if (served.name == "model" &&
      ParseVersion(file.parent_path().filename().string(), &served.version)) {
    const fs::path model = file.parent_path().parent_path();
    served.name = model.filename().string();
    served.folder = file.parent_path().string();
    labels = model / "labels.txt";
    served.config_path = (model / "config.pbtxt").string();
  }
  served.labels_path = labels.string();
  return std::vector<ServedModel>{std::move(served)};
}

}  // namespace tilewire::service
