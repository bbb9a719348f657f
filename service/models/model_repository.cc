// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_repository.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "absl/strings/match.h"
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

}  // namespace

absl::string_view ModelStateName(ModelState state) {
  switch (state) {
    case ModelState::kLoading:
      return "LOADING";
    case ModelState::kReady:
      return "READY";
    case ModelState::kUnavailable:
      break;
  }
  return "UNAVAILABLE";
}

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::ScanDirectory(
    const std::string& directory) {
  std::error_code error;
  if (!fs::is_directory(directory, error)) {
    return absl::NotFoundError(
        absl::StrCat("model repository '", directory, "' is not a directory"));
  }
  auto repository = std::make_unique<ModelRepository>();
  ABSL_ASSIGN_OR_RETURN(const std::vector<fs::path> models, Entries(directory));
  for (const fs::path& model : models) {
    if (!fs::is_directory(model, error) || IsHidden(model)) continue;
    if (!IsUtf8(model.filename().string())) {
      spdlog::warn("{}: skipped, its name is not UTF-8", model.string());
      continue;
    }
    repository->ScanVersions(model.string());
  }
  if (repository->snapshot()->empty()) {
    return absl::NotFoundError(absl::StrCat(
        "model repository '", directory,
        "' holds no <model>/<version>/model.onnx, such as digits/1/model.onnx; for one file use "
        "--model=FILE"));
  }
  return repository;
}

void ModelRepository::ScanVersions(const std::string& directory) {
  const fs::path model(directory);
  const absl::StatusOr<std::vector<fs::path>> entries = Entries(model);
  if (!entries.ok()) {
    spdlog::error("{}: skipped, {}", directory, entries.status().ToString());
    return;
  }
  bool found = false;
  for (const fs::path& entry : *entries) {
    ServedModel served;
    if (!ParseVersion(entry.filename().string(), &served.version)) continue;
    found = true;
    served.name = model.filename().string();
    served.path = (entry / "model.onnx").string();
    served.labels_path = (model / "labels.txt").string();
    Publish(std::move(served));
  }
  if (!found) {
    spdlog::warn("{}: skipped, it has no folder of a version such as {}", directory,
                 (model / "1" / "model.onnx").string());
  }
}

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::ScanFile(
    const std::string& path) {
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
    labels = model / "labels.txt";
  }
  served.labels_path = labels.string();
  auto repository = std::make_unique<ModelRepository>();
  repository->Publish(std::move(served));
  return repository;
}

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::OpenDirectory(
    const std::string& directory, Engine* engine) {
  ABSL_ASSIGN_OR_RETURN(auto repository, ScanDirectory(directory));
  repository->LoadAll(engine);
  return repository;
}

absl::StatusOr<std::unique_ptr<ModelRepository>> ModelRepository::OpenFile(const std::string& path,
                                                                           Engine* engine) {
  ABSL_ASSIGN_OR_RETURN(auto repository, ScanFile(path));
  repository->LoadAll(engine);
  ABSL_RETURN_IF_ERROR(repository->All()[0]->load_status);
  return repository;
}

void ModelRepository::LoadAll(Engine* engine, const std::function<void()>& changed,
                              const std::function<bool()>& stop) {
  for (const Served& served : All()) {
    if (stop && stop()) return;
    if (served->state != ModelState::kLoading) continue;
    Publish(Loaded(*served, engine));
    if (changed) changed();
  }
}

ServedModel ModelRepository::Loaded(const ServedModel& wanted, Engine* engine) {
  ServedModel served = wanted;
  const absl::Time start = absl::Now();
  absl::StatusOr<std::shared_ptr<const Model>> model = engine->LoadModel(served.path);
  if (model.ok()) {
    served.state = ModelState::kReady;
    served.model = *std::move(model);
    served.labels = ReadLabels(served.labels_path);
    spdlog::info("model '{}' version {}: loaded in {} ms", served.name, served.version,
                 absl::ToInt64Milliseconds(absl::Now() - start));
    return served;
  }
  served.state = ModelState::kUnavailable;
  // Clients read this text: it must not name a path on this machine.
  served.load_status =
      absl::Status(model.status().code(),
                   absl::StrReplaceAll(model.status().message(), {{served.path, "model.onnx"}}));
  const std::string why = model.status().ToString();
  spdlog::error("model '{}' version {}: {}{}", served.name, served.version, why,
                absl::StrContains(why, served.path) ? "" : absl::StrCat(" (", served.path, ")"));
  return served;
}

void ModelRepository::Publish(ServedModel served) {
  auto next = std::make_shared<Snapshot>(*snapshot());
  (*next)[served.name][served.version] = std::make_shared<const ServedModel>(served);
  snapshot_.store(std::move(next));
}

absl::StatusOr<ModelRepository::Served> ModelRepository::Find(absl::string_view name,
                                                              absl::string_view version) const {
  if (name.empty()) return absl::InvalidArgumentError("the model's name is empty");
  const std::shared_ptr<const Snapshot> models = snapshot();
  const auto versions = models->find(name);
  if (versions == models->end()) {
    return absl::NotFoundError(absl::StrCat("no model ", Quoted(name)));
  }
  if (version.empty()) {
    for (auto it = versions->second.rbegin(); it != versions->second.rend(); ++it) {
      if (it->second->state == ModelState::kReady) return it->second;
    }
    return versions->second.rbegin()->second;
  }
  int64_t number = 0;
  if (!ParseVersion(version, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("version ", Quoted(version), " of model ",
                                                   Quoted(name), " is not an integer"));
  }
  const auto found = versions->second.find(number);
  if (found == versions->second.end()) {
    return absl::NotFoundError(absl::StrCat("no version ", number, " of model ", Quoted(name)));
  }
  return found->second;
}

absl::Status ModelRepository::Usable(const ServedModel& served) {
  switch (served.state) {
    case ModelState::kReady:
      return absl::OkStatus();
    case ModelState::kLoading:
      return absl::UnavailableError(
          absl::StrCat("model ", Quoted(served.name), " is still loading"));
    case ModelState::kUnavailable:
      break;
  }
  return absl::FailedPreconditionError(absl::StrCat(
      "model ", Quoted(served.name), " failed to load: ", served.load_status.message()));
}

absl::StatusOr<ModelRepository::Served> ModelRepository::FindLoaded(
    absl::string_view name, absl::string_view version) const {
  ABSL_ASSIGN_OR_RETURN(Served served, Find(name, version));
  ABSL_RETURN_IF_ERROR(Usable(*served));
  return served;
}

std::vector<std::string> ModelRepository::Names() const {
  std::vector<std::string> names;
  for (const auto& [name, versions] : *snapshot()) names.push_back(name);
  return names;
}

std::vector<int64_t> ModelRepository::Versions(absl::string_view name) const {
  std::vector<int64_t> numbers;
  const std::shared_ptr<const Snapshot> models = snapshot();
  const auto versions = models->find(name);
  if (versions == models->end()) return numbers;
  for (const auto& [number, served] : versions->second) numbers.push_back(number);
  return numbers;
}

std::vector<ModelRepository::Served> ModelRepository::All() const {
  std::vector<Served> all;
  for (const auto& [name, versions] : *snapshot()) {
    for (const auto& [number, served] : versions) all.push_back(served);
  }
  return all;
}

bool ModelRepository::AllReady() const {
  for (const std::string& name : Names()) {
    if (!FindLoaded(name, "").ok()) return false;
  }
  return true;
}

bool ModelRepository::AnyReady() const {
  for (const std::string& name : Names()) {
    if (FindLoaded(name, "").ok()) return true;
  }
  return false;
}

}  // namespace tilewire::service
