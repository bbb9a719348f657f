// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_repository.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/clock.h"
#include "engine/base/status_macros.h"
#include "google/protobuf/wire_format_lite.h"
#include "service/wire/status_text.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

constexpr uintmax_t kMaxLabelsBytes = 64 << 10;

// A version is digits only, so that every version has one spelling but for leading zeros.
bool ParseVersion(absl::string_view text, int64_t* version) {
  const bool digits = !text.empty() && std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return c >= '0' && c <= '9';
  });
  return digits && absl::SimpleAtoi(text, version);
}

// What travels in a message's strings must be UTF-8, or no client can parse the message.
bool IsUtf8(const std::string& text) {
  using google::protobuf::internal::WireFormatLite;
  return WireFormatLite::VerifyUtf8String(text.data(), static_cast<int>(text.size()),
                                          WireFormatLite::PARSE, nullptr);
}

std::string ReadLabels(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return "";
  const uintmax_t size = fs::file_size(path, error);
  if (error || size > kMaxLabelsBytes) {
    spdlog::warn("{}: not read, it is larger than {} bytes", path, kMaxLabelsBytes);
    return "";
  }
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  if (IsUtf8(text.str())) return text.str();
  spdlog::warn("{}: not read, it is not UTF-8", path);
  return "";
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

}  // namespace

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::OpenDirectory(
    const std::string& directory, Engine* engine) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(absl::StrCat("model repository '", directory, "' is no directory"));
  }
  auto repository = std::make_unique<ModelRepository>();
  ABSL_ASSIGN_OR_RETURN(const std::vector<fs::path> models, Entries(directory));
  for (const fs::path& model : models) {
    if (!fs::is_directory(model, error)) continue;
    if (!IsUtf8(model.filename().string())) {
      spdlog::warn("{}: skipped, its name is not UTF-8", model.string());
      continue;
    }
    repository->LoadVersions(model.string(), engine);
  }
  if (repository->models_.empty()) {
    return absl::NotFoundError(absl::StrCat(
        "model repository '", directory,
        "' holds no <model>/<version>/model.onnx, such as digits/1/model.onnx; for one file use "
        "--model=FILE"));
  }
  return repository;
}

void ModelRepository::LoadVersions(const std::string& directory, Engine* engine) {
  const fs::path model(directory);
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(model);
  if (!entries.ok()) {
    spdlog::error("{}: skipped, {}", directory, entries.status().ToString());
    return;
  }
  bool found = false;
  for (const fs::path& entry : *entries) {
    int64_t version = 0;
    if (!ParseVersion(entry.filename().string(), &version)) continue;
    found = true;
    Load(model.filename().string(), version, (entry / "model.onnx").string(),
         (model / "labels.txt").string(), engine);
  }
  if (!found) {
    spdlog::warn("{}: skipped, it has no folder of a version such as {}", directory,
                 (model / "1" / "model.onnx").string());
  }
}

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::OpenFile(const std::string& path,
                                                                           Engine* engine) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) {
    return absl::NotFoundError(absl::StrCat("model '", path, "' is no file"));
  }
  const fs::path file = fs::absolute(path, error);
  std::string name = file.stem().string();
  int64_t version = 1;
  fs::path labels = file.parent_path() / "labels.txt";
  if (name == "model" && ParseVersion(file.parent_path().filename().string(), &version)) {
    const fs::path model = file.parent_path().parent_path();
    name = model.filename().string();
    labels = model / "labels.txt";
  }
  auto repository = std::make_unique<ModelRepository>();
  repository->Load(name, version, path, labels.string(), engine);
  ABSL_RETURN_IF_ERROR(repository->models_.begin()->second.begin()->second->load_status);
  return repository;
}

void ModelRepository::Load(const std::string& name, int64_t version, const std::string& path,
                           const std::string& labels_path, Engine* engine) {
  auto served = std::make_shared<ServedModel>();
  served->name = name;
  served->version = version;
  const absl::Time start = absl::Now();
  absl::StatusOr<std::shared_ptr<const Model>> model = engine->LoadModel(path);
  if (model.ok()) {
    served->model = *std::move(model);
    served->labels = ReadLabels(labels_path);
    spdlog::info("model '{}' version {}: loaded in {} ms", name, version,
                 absl::ToInt64Milliseconds(absl::Now() - start));
  } else {
    // Clients read this text: it names no place on this machine.
    served->load_status =
        absl::Status(model.status().code(),
                     absl::StrReplaceAll(model.status().message(), {{path, "model.onnx"}}));
    spdlog::error("model '{}' version {}: {}", name, version, model.status().ToString());
  }
  models_[name][version] = std::move(served);
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelRepository::Find(
    absl::string_view name, absl::string_view version) const {
  if (name.empty()) return absl::InvalidArgumentError("the model's name is empty");
  const auto versions = models_.find(std::string(name));
  if (versions == models_.end())
    return absl::NotFoundError(absl::StrCat("no model ", Quoted(name)));
  if (version.empty()) return versions->second.rbegin()->second;
  int64_t number = 0;
  if (!ParseVersion(version, &number)) {
    return absl::InvalidArgumentError(
        absl::StrCat("version ", Quoted(version), " of model ", Quoted(name), " is no integer"));
  }
  const auto found = versions->second.find(number);
  if (found == versions->second.end()) {
    return absl::NotFoundError(absl::StrCat("no version ", number, " of model ", Quoted(name)));
  }
  return found->second;
}

absl::StatusOr<std::shared_ptr<const ServedModel>> ModelRepository::FindLoaded(
    absl::string_view name, absl::string_view version) const {
  ABSL_ASSIGN_OR_RETURN(std::shared_ptr<const ServedModel> served, Find(name, version));
  if (!served->load_status.ok()) {
    return absl::FailedPreconditionError(
        absl::StrCat("model ", Quoted(name), " failed to load: ", served->load_status.message()));
  }
  return served;
}

std::vector<std::string> ModelRepository::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, versions] : models_) names.push_back(name);
  return names;
}

std::vector<int64_t> ModelRepository::Versions(absl::string_view name) const {
  std::vector<int64_t> numbers;
  const auto versions = models_.find(std::string(name));
  if (versions == models_.end()) return numbers;
  for (const auto& [number, served] : versions->second) numbers.push_back(number);
  return numbers;
}

bool ModelRepository::AllLoaded() const {
  for (const auto& [name, versions] : models_) {
    for (const auto& [number, served] : versions) {
      if (!served->load_status.ok()) return false;
    }
  }
  return true;
}

}  // namespace tilewire::service
