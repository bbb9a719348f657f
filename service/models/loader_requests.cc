// SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads that clients ask for, on the loader's thread.
#include <algorithm>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "service/models/loader.h"
#include "service/models/model_config.h"
#include "service/wire/status_text.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

absl::Status NoSuchModel(const std::string& name) {
  return absl::NotFoundError(absl::StrCat("no model ", Quoted(name), " in the model repositories"));
}

// Whether a version is served from a folder below this one, which may have others that failed.
bool ServesFrom(const ModelRepository& models, const std::string& folder) {
  if (folder.empty()) return false;
  const std::vector<ModelRepository::Served> all = models.All();
  return std::any_of(all.begin(), all.end(), [&folder](const ModelRepository::Served& served) {
    return served->state == ModelState::kReady &&
           absl::StartsWith(served->folder, absl::StrCat(folder, "/"));
  });
}

}  // namespace

void Loader::Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
                  std::vector<UploadedFile> files, Done done) {
  Submit({.load = true,
          .name = name,
          .config = std::move(config),
          .files = std::move(files),
          .done = std::move(done)});
}

void Loader::Unload(const std::string& name, Done done) {
  Submit({.load = false, .name = name, .config = nullptr, .files = {}, .done = std::move(done)});
}

void Loader::Submit(Request request) {
  absl::Status refused;
  if (settings_.mode != ControlMode::kExplicit) {
    refused = absl::FailedPreconditionError(
        "models are loaded and unloaded as they come to lie on disk; requests may ask for it with "
        "--model_control=explicit");
  } else if (request.name.empty()) {
    refused = absl::InvalidArgumentError("the model's name is empty");
  }
  if (refused.ok()) {
    threading::MutexLock lock(&mutex_);
    if (!stopping_) return requests_.push_back(std::move(request));
    refused = absl::CancelledError("the server ends");
  }
  request.done(refused);
}

void Loader::ServeRequests() {
  while (!Stopping()) {
    Request request;
    {
      threading::MutexLock lock(&mutex_);
      if (requests_.empty()) return;
      request = std::move(requests_.front());
      requests_.pop_front();
    }
    if (!request.load) {
      BeginUnload(std::move(request));
      continue;
    }
    const absl::Status loaded = LoadByRequest(&request);
    request.done(Stopping() ? absl::CancelledError("the server ends") : loaded);
  }
}

// The models that serve under this name.
std::vector<const Model*> Loader::ModelsOf(const std::string& name) const {
  std::vector<const Model*> models;
  for (const ModelRepository::Served& served : models_->All()) {
    if (served->name == name && served->model != nullptr) models.push_back(served->model.get());
  }
  return models;
}

absl::Status Loader::LoadByRequest(Request* request) {
  if (request->config != nullptr)
    ABSL_RETURN_IF_ERROR(Verdict(JudgeSettings(*request->config, request->name), /*strict=*/false));
  ScanScope scope{.model = request->name, .config = request->config, .folder = ""};
  if (!request->files.empty()) {
    ABSL_ASSIGN_OR_RETURN(scope.folder, settings_.uploads->Write(request->files));
    request->files = {};
  }
  std::vector<const Model*> before = ModelsOf(request->name);
  const absl::Status loaded = LoadScanned(request->name, scope);
  if (loaded.ok() || ServesFrom(*models_, scope.folder)) {
    uploads_.Set(request->name, scope.folder, std::move(before));
  } else if (!scope.folder.empty()) {
    settings_.uploads->Remove(scope.folder);
  }
  return loaded;
}

absl::Status Loader::LoadScanned(const std::string& name, const ScanScope& scope) {
  const absl::StatusOr<std::vector<ServedModel>> found = settings_.scan(scope);
  if (absl::IsNotFound(found.status()) || (found.ok() && found->empty())) return NoSuchModel(name);
  if (!found.ok()) {
    spdlog::error("load of model '{}': {}", name, std::string(found.status().message()));
    return absl::FailedPreconditionError("the model repositories cannot be read; the log says why");
  }
  SetWanted(*found, name);
  absl::Status first;
  for (const ServedModel& served : *found) first.Update(LoadVersionByRequest(served));
  Retire(name);
  return first;
}

// A version that is loaded and unchanged stays. What did not load is tried again.
absl::Status Loader::LoadVersionByRequest(ServedModel found) {
  const Key key = KeyOf(found);
  {
    const ModelRepository::Served now = models_->Peek(key.first, key.second);
    const bool serves = now != nullptr && now->state == ModelState::kReady && now->load_status.ok();
    const bool same_config =
        serves && now->given_config == nullptr && found.given_config == nullptr;
    if (same_config && watched_[key].loaded == StampOf(found)) return absl::OkStatus();
  }
  LoadFound(std::move(found));
  const ModelRepository::Served now = models_->Peek(key.first, key.second);
  if (now != nullptr && now->state == ModelState::kReady && now->load_status.ok())
    return absl::OkStatus();
  return absl::FailedPreconditionError(
      absl::StrCat("version ", key.second, ": ",
                   now == nullptr ? "it was not loaded" : now->load_status.message()));
}

void Loader::BeginUnload(Request request) {
  Ending ending{.name = request.name, .done = std::move(request.done)};
  for (const ModelRepository::Served& served : models_->All()) {
    if (served->name != request.name || !IsLive(*served)) continue;
    ending.versions.push_back(served->version);
    if (served->model != nullptr) {
      ending.models.push_back(served->model.get());
      ending.bytes += served->model->HeldBytes();
    }
    models_->Change(*served, [](ServedModel* now) {
      now->state = ModelState::kUnloading;
      now->model = nullptr;
    });
    Forget(served);
  }
  ending.is_upload = uploads_.Has(ending.name);
  uploads_.Set(ending.name, "", ending.models);
  if (ending.versions.empty()) {
    return ending.done(absl::NotFoundError(
        absl::StrCat("no version of model ", Quoted(ending.name), " is loaded")));
  }
  wanted_.erase(ending.name);
  settings_.changed();
  endings_.push_back(std::move(ending));
}

// An upload that has gone leaves what lies in the repositories under its name.
void Loader::ListAgain(const std::string& name) {
  const auto found = settings_.scan({.model = name, .config = nullptr, .folder = ""});
  if (!found.ok()) return;
  for (ServedModel served : *found) {
    if (models_->Peek(name, served.version) != nullptr) continue;
    served.state = ModelState::kUnloaded;
    models_->Publish(std::move(served));
  }
}

// Tells of the unloads whose memory is back.
void Loader::EndUnloads() {
  std::vector<Ending> going_on;
  for (Ending& ending : endings_) {
    const bool is_held = std::any_of(ending.models.begin(), ending.models.end(),
                                     [this](const Model* model) { return retired_.Holds(model); });
    if (is_held) {
      going_on.push_back(std::move(ending));
      continue;
    }
    for (int64_t version : ending.versions) {
      const ModelRepository::Served served = models_->Peek(ending.name, version);
      if (served == nullptr || served->state != ModelState::kUnloading) continue;
      ending.is_upload ? models_->Remove(*served) : models_->Unload(*served);
    }
    if (ending.is_upload) ListAgain(ending.name);
    spdlog::info("model '{}': unloaded, {} MB are free again", ending.name, ending.bytes >> 20);
    if (settings_.memory != nullptr) settings_.memory->Update(*models_);
    settings_.changed();
    ending.done(absl::OkStatus());
  }
  endings_ = std::move(going_on);
}

void Loader::CancelRequests() {
  std::deque<Request> waiting;
  {
    threading::MutexLock lock(&mutex_);
    waiting.swap(requests_);
  }
  const absl::Status ended = absl::CancelledError("the server ends");
  for (Request& request : waiting) request.done(ended);
  for (Ending& ending : endings_) ending.done(ended);
  endings_.clear();
}

}  // namespace tilewire::service
