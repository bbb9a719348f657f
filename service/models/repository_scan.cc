// SPDX-License-Identifier: Apache-2.0
#include "service/models/repository_scan.h"

#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "absl/algorithm/container.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "service/models/model_config.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

void Remark(const ScanOptions& options, const fs::path& path, absl::string_view text) {
  const std::string line = absl::StrCat(path.string(), ": ", text);
  if (options.remark) return options.remark(line);
  spdlog::warn(line);
}

bool IsIn(const ScanScope& scope, const std::string& name) {
  return scope.model.empty() || scope.model == name;
}

bool IsHidden(const fs::path& path) { return absl::StartsWith(path.filename().string(), "."); }

// The folder above `path`, or `path` itself, that this user may not enter; empty if there is none.
std::string ClosedFolder(const fs::path& path) {
  std::error_code error;
  fs::path folder;
  for (const fs::path& part : fs::absolute(path, error)) {
    folder /= part;
    if (fs::is_directory(folder, error) && access(folder.c_str(), X_OK) != 0)
      return folder.string();
  }
  return "";
}

// Why there is no `what` at `path`.
absl::Status Missing(absl::string_view what, const std::string& path, absl::string_view otherwise) {
  std::error_code error;
  (void)fs::status(path, error);
  if (const std::string closed = ClosedFolder(path); error && !closed.empty()) {
    return absl::PermissionDeniedError(absl::StrCat(what, " '", path, "': ", error.message(),
                                                    ": the user with the id ", geteuid(),
                                                    " may not enter the folder '", closed, "'"));
  }
  return absl::NotFoundError(absl::StrCat(what, " '", path, "' ", otherwise));
}

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

// Erases the versions that the model's settings leave out. Settings that cannot be read leave out
// what none would: each version then tells why it does not load.
void KeepWanted(const fs::path& model, const std::string& name, const ScanOptions& options,
                std::map<int64_t, ServedModel>* versions) {
  inference::ModelConfig config;
  if (options.scope.config != nullptr && options.scope.model == name) {
    config = *options.scope.config;
  } else if (auto read = ReadSettings((model / "config.pbtxt").string(), name); read.ok()) {
    config = std::move(read->config);
  }
  std::vector<int64_t> numbers;
  for (const auto& [number, served] : *versions) numbers.push_back(number);
  const std::vector<int64_t> wanted = WantedVersions(config, numbers, options.latest);
  std::erase_if(*versions, [&wanted](const auto& version) {
    return !std::binary_search(wanted.begin(), wanted.end(), version.first);
  });
  if (versions->empty() && !numbers.empty()) {
    Remark(options, model, "skipped, its version_policy names no version that is there");
  }
}

// A version whose file lies in `folder`, its labels and settings in `settings_folder`.
ServedModel VersionIn(const fs::path& folder, const fs::path& settings_folder,
                      const std::string& file, const ScanOptions& options) {
  ServedModel served;
  served.folder = folder.string();
  served.settings_folder = settings_folder.string();
  served.default_file = file;
  served.path = OnnxFileAt((folder / file).string());
  served.labels_path = (settings_folder / "labels.txt").string();
  served.config_path = (settings_folder / "config.pbtxt").string();
  served.strict_config = options.strict_config;
  served.given_config = options.scope.config;
  return served;
}

// Whether it has zeros ahead of its number, so that two folders might be one version.
bool IsPadded(absl::string_view version) { return version.size() > 1 && version[0] == '0'; }

// A folder beside the versions that looks like one.
void RemarkOther(const fs::path& entry, const ScanOptions& options) {
  std::error_code error;
  if (IsHidden(entry) || !fs::exists(entry / "model.onnx", error)) return;
  Remark(options, entry,
         IsPadded(entry.filename().string())
             ? "skipped, the number of a version has no zeros ahead of it; rename it"
             : "skipped, the name of a version is a number from 0 to 2^63-1");
}

// Every version in a model's folder that its settings want.
void ScanVersions(const fs::path& model, const std::string& name, const ScanOptions& options,
                  std::vector<ServedModel>* found) {
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(model);
  if (!entries.ok()) {
    return Remark(options, model, absl::StrCat("skipped, ", entries.status().ToString()));
  }
  std::map<int64_t, ServedModel> versions;
  for (const fs::path& entry : *entries) {
    const std::string number = entry.filename().string();
    int64_t version = 0;
    if (!ParseVersion(number, &version) || IsPadded(number)) {
      RemarkOther(entry, options);
      continue;
    }
    versions[version] = VersionIn(entry, model, "model.onnx", options);
    versions[version].name = name;
    versions[version].version = version;
  }
  if (versions.empty()) {
    Remark(options, model,
           absl::StrCat("skipped, it has no folder of a version such as ",
                        (model / "1" / "model.onnx").string()));
  }
  KeepWanted(model, name, options, &versions);
  for (auto& [number, served] : versions) found->push_back(std::move(served));
}

// Whether there are folders of versions in it.
bool IsModelFolder(const fs::path& folder) {
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(folder);
  return entries.ok() && absl::c_any_of(*entries, [](const fs::path& entry) {
           std::error_code error;
           int64_t version = 0;
           return ParseVersion(entry.filename().string(), &version) &&
                  fs::is_directory(entry, error);
         });
}

// A hint for a folder without a model: one below it may be meant.
std::string MeantBelow(const fs::path& folder) {
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(folder);
  if (!entries.ok()) return "";
  std::vector<std::string> models;
  for (const fs::path& entry : *entries) {
    std::error_code error;
    if (!IsHidden(entry) && fs::is_directory(entry, error) && IsModelFolder(entry))
      models.push_back(entry.filename().string());
  }
  if (models.empty()) return "";
  if (models.size() > 1)
    return absl::StrCat("; it holds ", models.size(), " model folders: use --model_repository");
  return absl::StrCat("; it holds '", models[0],
                      "', which is a model folder: point at it, or use --model_repository");
}

}  // namespace

std::string OnnxFileAt(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error) ? (fs::path(path) / "model.onnx").string() : path;
}

std::string OnnxFileOf(const ServedModel& served, const inference::ModelConfig& config) {
  return OnnxFileAt((fs::path(served.folder) / ModelFile(config, served.default_file)).string());
}

absl::StatusOr<std::vector<std::string>> OnnxFiles(const std::string& folder) {
  ABSL_ASSIGN_OR_RETURN(const std::vector<fs::path> entries, Entries(folder));
  std::vector<std::string> files;
  for (const fs::path& entry : entries) {
    if (entry.extension() == ".onnx" && !IsHidden(entry))
      files.push_back(entry.filename().string());
  }
  return files;
}

bool ParseVersion(absl::string_view text, int64_t* version) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  return digits && absl::SimpleAtoi(text, version);
}

absl::StatusOr<std::vector<ServedModel>> ScanDirectory(const std::string& directory,
                                                       const ScanOptions& options) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return Missing("model repository", directory, "is not a directory");
  }
  ABSL_ASSIGN_OR_RETURN(const std::vector<fs::path> models, Entries(directory));
  std::vector<ServedModel> found;
  int skipped = 0;
  for (const fs::path& model : models) {
    if (!fs::is_directory(model, error) || IsHidden(model)) continue;
    if (!IsIn(options.scope, model.filename().string())) continue;
    if (!IsUtf8(model.filename().string())) {
      Remark(options, model, "skipped, its name is not UTF-8");
      continue;
    }
    const size_t before = found.size();
    ScanVersions(model, model.filename().string(), options, &found);
    skipped += found.size() == before ? 1 : 0;
  }
  if (!found.empty()) return found;
  return absl::NotFoundError(absl::StrCat(
      "model repository '", directory,
      "' holds no <model>/<version>/model.onnx, such as digits/1/model.onnx, that is to be served",
      skipped > 0 ? "; the log says why each of its folders was skipped" : "",
      "; for one file use --model=FILE"));
}

absl::StatusOr<std::vector<ServedModel>> ScanDirectories(
    const std::vector<std::string>& directories, const ScanOptions& options) {
  std::map<std::string, std::string> where;  // by model's name
  std::vector<ServedModel> all;
  absl::Status empty = absl::OkStatus();
  for (const std::string& directory : directories) {
    std::error_code error;
    absl::StatusOr<std::vector<ServedModel>> found = ScanDirectory(directory, options);
    if (absl::IsNotFound(found.status()) && fs::is_directory(directory, error)) {
      empty = found.status();
      continue;
    }
    ABSL_RETURN_IF_ERROR(found.status());
    for (ServedModel& served : *found) {
      const auto [it, is_new] = where.emplace(served.name, directory);
      if (!is_new && it->second != directory) {
        return absl::InvalidArgumentError(
            absl::StrCat("model '", served.name, "' lies in two model repositories, '", it->second,
                         "' and '", directory, "'; one of the folders needs another name"));
      }
      all.push_back(std::move(served));
    }
  }
  if (all.empty() && !empty.ok()) return empty;
  return all;
}

absl::StatusOr<std::vector<ServedModel>> ScanFile(const std::string& path, const std::string& name,
                                                  const ScanOptions& options) {
  std::error_code error;
  if (!fs::exists(path, error)) {
    return Missing("model", path, "does not exist");
  }
  if (const std::string inside = OnnxFileAt(path); !fs::is_regular_file(inside, error)) {
    return absl::NotFoundError(
        absl::StrCat("model '", path, "' ",
                     inside == path ? "is not a regular file"
                                    : "is a folder without a file model.onnx, which is expected in "
                                      "a model of several files"));
  }
  const fs::path file = fs::absolute(path, error);
  const fs::path folder = file.parent_path();
  ServedModel served;
  served.path = OnnxFileAt(path);
  served.labels_path = (folder / "labels.txt").string();
  served.given_config = options.scope.config;
  fs::path named_after = file.stem();
  int64_t version = 1;
  if (named_after == "model" && ParseVersion(folder.filename().string(), &version)) {
    named_after = folder.parent_path().filename();
    served = VersionIn(folder, folder.parent_path(), "model.onnx", options);
    served.version = version;
  }
  served.name = name.empty() ? named_after.string() : name;
  return std::vector<ServedModel>{std::move(served)};
}

absl::StatusOr<std::vector<ServedModel>> ScanFolder(const std::string& path,
                                                    const std::string& name,
                                                    const ScanOptions& options) {
  std::error_code error;
  fs::path folder = fs::absolute(path, error).lexically_normal();
  if (!folder.has_filename()) folder = folder.parent_path();  // it ended with a slash
  ABSL_ASSIGN_OR_RETURN(const std::vector<std::string> files, OnnxFiles(folder));
  const bool has_standard = absl::c_linear_search(files, "model.onnx");
  const std::string given = name.empty() ? folder.filename().string() : name;
  int64_t version = 0;
  if (has_standard && folder.filename() == "model.onnx" &&
      ParseVersion(folder.parent_path().filename().string(), &version))
    return ScanFile(folder.string(), name, options);  // a version of several files
  if (has_standard && ParseVersion(folder.filename().string(), &version))
    return ScanFile((folder / "model.onnx").string(), name, options);
  if (files.size() > 1 && !has_standard) {
    return absl::InvalidArgumentError(
        absl::StrCat("model '", path, "' is a folder of ", files.size(),
                     " ONNX files, none of them model.onnx; name one of them"));
  }
  std::vector<ServedModel> found;
  if (files.empty()) {
    ScanVersions(folder, given, options, &found);
  } else {
    found.push_back(VersionIn(folder, folder, has_standard ? "model.onnx" : files[0], options));
    found[0].name = given;
  }
  if (found.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "model '", path, "' is a folder without 1/model.onnx or an ONNX file", MeantBelow(folder)));
  }
  return found;
}

}  // namespace tilewire::service
