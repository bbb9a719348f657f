// SPDX-License-Identifier: Apache-2.0
//
// Loads and unloads that clients ask for, on the loader's thread.
#include <algorithm>

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

}  // namespace

void Loader::Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
                  Done done) {
  Submit({.load = true, .name = name, .config = std::move(config), .done = std::move(done)});
}

void Loader::Unload(const std::string& name, Done done) {
  Submit({.load = false, .name = name, .config = nullptr, .done = std::move(done)});
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
    const absl::Status loaded = LoadByRequest(request);
    request.done(Stopping() ? absl::CancelledError("the server ends") : loaded);
  }
}

absl::Status Loader::LoadByRequest(const Request& request) {
  if (request.config != nullptr)
    ABSL_RETURN_IF_ERROR(Verdict(JudgeSettings(*request.config, request.name), /*strict=*/false));
  const absl::StatusOr<std::vector<ServedModel>> found =
      settings_.scan({.model = request.name, .config = request.config});
  if (absl::IsNotFound(found.status()) || (found.ok() && found->empty()))
    return NoSuchModel(request.name);
  if (!found.ok()) {
    spdlog::error("load of model '{}': {}", request.name, std::string(found.status().message()));
    return absl::FailedPreconditionError("the model repositories cannot be read; the log says why");
  }
  SetWanted(*found, request.name);
  absl::Status first;
  for (const ServedModel& served : *found) first.Update(LoadVersionByRequest(served));
  Retire(request.name);
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
      absl::StrCat("model ", Quoted(key.first), " version ", key.second,
                   " failed to load: ", now == nullptr ? "" : now->load_status.message()));
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
  if (ending.versions.empty()) {
    return ending.done(absl::NotFoundError(
        absl::StrCat("no version of model ", Quoted(ending.name), " is loaded")));
  }
  wanted_.erase(ending.name);
  settings_.changed();
  endings_.push_back(std::move(ending));
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
      if (served != nullptr && served->state == ModelState::kUnloading) models_->Unload(*served);
    }
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
