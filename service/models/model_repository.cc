// SPDX-License-Identifier: Apache-2.0
#include "service/models/model_repository.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/models/repository_scan.h"
#include "service/wire/status_text.h"

namespace tilewire::service {
namespace {

constexpr char kOverwritten[] =
    "its file was written to while it served; it is unavailable until it is loaded again";

}  // namespace

ModelRepository::ModelRepository(std::vector<ServedModel> found) {
  auto snapshot = std::make_shared<Snapshot>();
  for (ServedModel& served : found) {
    const Served shared = Counted(std::move(served));
    (*snapshot)[shared->name][shared->version] = shared;
  }
  snapshot_.store(std::move(snapshot));
}

std::shared_ptr<const ServedModel> ModelRepository::Counted(ServedModel served) {
  served.statistics = statistics_.Of(served.name, served.version);
  served.absent = statistics_.OfAbsentVersions(served.name);
  return std::make_shared<const ServedModel>(std::move(served));
}

void ModelRepository::Publish(ServedModel served) {
  threading::MutexLock lock(&writing_);
  const Kept now = snapshot();
  auto next = std::make_shared<Snapshot>(*now);
  const Served shared = Counted(std::move(served));
  (*next)[shared->name][shared->version] = shared;
  snapshot_.store(std::move(next));
}

void ModelRepository::Change(const ServedModel& served,
                             absl::FunctionRef<void(ServedModel*)> change) {
  threading::MutexLock lock(&writing_);
  const Kept now = snapshot();
  auto next = std::make_shared<Snapshot>(*now);
  const auto model = next->find(served.name);
  if (model == next->end()) return;
  const auto version = model->second.find(served.version);
  if (version == model->second.end()) return;
  ServedModel changed = *version->second;
  change(&changed);
  version->second = std::make_shared<const ServedModel>(std::move(changed));
  snapshot_.store(std::move(next));
}

void ModelRepository::Remove(const ServedModel& served) {
  threading::MutexLock lock(&writing_);
  const Kept now = snapshot();
  auto next = std::make_shared<Snapshot>(*now);
  const auto model = next->find(served.name);
  if (model == next->end()) return;
  model->second.erase(served.version);
  const bool was_last = model->second.empty();
  if (was_last) next->erase(model);
  snapshot_.store(std::move(next));
  statistics_.Forget(served.name, served.version);
  if (was_last) statistics_.ForgetModel(served.name);
}

void ModelRepository::Unload(const ServedModel& served) {
  Change(served, [](ServedModel* now) {
    now->state = ModelState::kUnloaded;
    now->load_status = absl::OkStatus();
    now->stands_in = false;
    now->model = nullptr;
  });
}

absl::Status ModelRepository::AfterRun(const Served& served, const absl::Status& status) {
  if (!absl::IsFailedPrecondition(status)) return status;
  MarkOverwritten(served);
  return absl::UnavailableError(absl::StrCat("model ", Quoted(served->name), ": ", kOverwritten));
}

void ModelRepository::MarkOverwritten(const Served& served) {
  Change(*served, [&served](ServedModel* now) {
    if (now->model != served->model || now->state != ModelState::kReady) return;
    now->state = ModelState::kUnavailable;
    now->load_status = absl::UnavailableError(kOverwritten);
  });
}

// The highest live version that is ready, or the highest live one; null if there is none.
ModelRepository::Served ModelRepository::Best(const ModelVersions& versions) {
  Served highest;
  for (auto it = versions.rbegin(); it != versions.rend(); ++it) {
    if (it->second->state == ModelState::kReady) return it->second;
    if (highest == nullptr && IsLive(*it->second)) highest = it->second;
  }
  return highest;
}

ModelRepository::Served ModelRepository::Peek(const std::string& name, int64_t version) const {
  const Kept models = snapshot();
  const auto versions = models->find(name);
  if (versions == models->end()) return nullptr;
  const auto found = versions->second.find(version);
  return found == versions->second.end() ? nullptr : found->second;
}

absl::StatusOr<ModelRepository::Served> ModelRepository::Find(absl::string_view name,
                                                              absl::string_view version) const {
  if (name.empty()) return absl::InvalidArgumentError("the model's name is empty");
  const Kept models = snapshot();
  const auto versions = models->find(name);
  const Served best = versions == models->end() ? nullptr : Best(versions->second);
  if (best == nullptr) return absl::NotFoundError(absl::StrCat("no model ", Quoted(name)));
  if (version.empty()) return best;
  int64_t number = 0;
  if (!ParseVersion(version, &number)) {
    return absl::InvalidArgumentError(absl::StrCat("version ", Quoted(version), " of model ",
                                                   Quoted(name), " is not an integer"));
  }
  const auto found = versions->second.find(number);
  if (found == versions->second.end() || !IsLive(*found->second)) {
    return absl::NotFoundError(absl::StrCat("no version ", number, " of model ", Quoted(name)));
  }
  return found->second;
}

absl::StatusOr<ModelRepository::Served> ModelRepository::FindLoaded(
    absl::string_view name, absl::string_view version) const {
  ABSL_ASSIGN_OR_RETURN(Served served, Find(name, version));
  ABSL_RETURN_IF_ERROR(Usable(*served));
  return served;
}

void ModelRepository::CountUnserved(absl::string_view name, absl::StatusCode code,
                                    RequestRefusal refusal) {
  const Kept models = snapshot();
  const auto versions = models->find(name);
  const bool is_there = versions != models->end();
  FailureCounts* const counts =
      is_there ? versions->second.begin()->second->absent.get() : &statistics_.unnamed();
  counts->Count(code, refusal);
}

std::vector<std::string> ModelRepository::Names() const {
  std::vector<std::string> names;
  const Kept models = snapshot();
  for (const auto& [name, versions] : *models) {
    if (Best(versions) != nullptr) names.push_back(name);
  }
  return names;
}

std::vector<int64_t> ModelRepository::Versions(absl::string_view name) const {
  std::vector<int64_t> numbers;
  const Kept models = snapshot();
  const auto versions = models->find(name);
  if (versions == models->end()) return numbers;
  for (const auto& [number, served] : versions->second) {
    if (IsLive(*served)) numbers.push_back(number);
  }
  return numbers;
}

std::vector<ModelRepository::Served> ModelRepository::All() const {
  std::vector<Served> all;
  const Kept models = snapshot();
  for (const auto& [name, versions] : *models) {
    for (const auto& [number, served] : versions) all.push_back(served);
  }
  return all;
}

std::vector<ModelRepository::Served> ModelRepository::NotReady() const {
  std::vector<Served> missing;
  const Kept models = snapshot();
  for (const auto& [name, versions] : *models) {
    const Served best = Best(versions);
    const bool has_stand_in =
        best != nullptr && best->state == ModelState::kReady && best->stands_in;
    for (const auto& [number, served] : versions) {
      if (IsLive(*served) && !has_stand_in && !Usable(*served).ok()) missing.push_back(served);
    }
  }
  return missing;
}

bool ModelRepository::AnyReady() const {
  for (const std::string& name : Names()) {
    if (FindLoaded(name, "").ok()) return true;
  }
  return false;
}

}  // namespace tilewire::service
