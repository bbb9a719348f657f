// SPDX-License-Identifier: Apache-2.0
//
// One load after the other, on the loader's thread.
#include "engine/base/status_macros.h"
#include "service/models/configured_warm_up.h"
#include "service/models/loader.h"
#include "service/models/model_load.h"
#include "service/observe/steady_time.h"
#include "service/schedule/background_turn.h"
#include "service/schedule/yield_often.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

// Requests hold their memory for as long as they run and their clients read.
constexpr absl::Duration kLongestWaitForRoom = absl::Minutes(1);
// Shapes of the version before on which a new one runs before it serves.
constexpr size_t kMostShapes = 16;
constexpr absl::Duration kRoomPoll = absl::Milliseconds(20);

// Beside the error of a load that failed: that the model is not down.
void LogWhatServesOn(const ModelRepository& models, const std::string& name) {
  const absl::StatusOr<ModelRepository::Served> serves = models.FindLoaded(name, "");
  if (serves.ok()) spdlog::warn("model '{}': version {} serves on", name, (*serves)->version);
}

}  // namespace

absl::Status Loader::BeginLoad(const FileStamp& files) {
  if (settings_.memory == nullptr) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(settings_.memory->BeginLoad(*models_, BytesOfLoad(SizeOf(files))));
  return AwaitRoom();
}

void Loader::EndLoad() {
  if (settings_.memory != nullptr) settings_.memory->EndLoad();
}

// Until requests leave free what the load takes from them.
absl::Status Loader::AwaitRoom() {
  const absl::Time end = SteadyNow() + kLongestWaitForRoom;
  threading::MutexLock lock(&mutex_);
  while (!settings_.memory->TakeRoom()) {
    if (stopping_) return absl::CancelledError("the server ends");
    if (SteadyNow() > end) {
      return absl::UnavailableError("requests hold the memory that loading it takes");
    }
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRoomPoll);
  }
  return absl::OkStatus();
}

// The version whose place `found` takes: of its own number, or else the highest that serves and is
// not wanted any more. Null if there is none.
ModelRepository::Served Loader::ReplacedBy(const ServedModel& found) const {
  const ModelRepository::Served same = models_->Peek(found.name, found.version);
  if (same != nullptr && same->model != nullptr) return same;
  ModelRepository::Served highest;
  for (const ModelRepository::Served& served : models_->All()) {
    if (served->name == found.name && served->model != nullptr && !IsWanted(*served))
      highest = served;
  }
  return highest;
}

// Withdraws what `found` replaces, and waits for the end of its runs.
void Loader::UnloadFirst(const ServedModel& found) {
  for (const ModelRepository::Served& served : models_->All()) {
    const bool same = served->version == found.version;
    if (served->name != found.name || served->model == nullptr || (!same && IsWanted(*served)))
      continue;
    spdlog::info("model '{}' version {}: unloaded before version {} is loaded", served->name,
                 served->version, found.version);
    Forget(served);
    if (!same) {
      models_->Unload(*served);
      continue;
    }
    models_->Change(*served, [](ServedModel* now) {
      now->state = ModelState::kLoading;
      now->model = nullptr;
    });
  }
  settings_.changed();
  const absl::Time end = SteadyNow() + kLongestWaitForRoom;
  while (!retired_.empty() && !Stopping() && SteadyNow() < end) {
    if (FreeRetired()) continue;
    threading::MutexLock lock(&mutex_);
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRoomPoll);
  }
}

// With the runs that come before it serves: those of its settings, and `shapes` that another
// version has served, which stands in for it.
ServedModel Loader::LoadNow(const ServedModel& found, bool is_replacement,
                            const std::vector<Shapes>& shapes) {
  BackgroundTurn turn(dispatcher_);
  std::optional<YieldOften> yields;
  if (has_started_) yields.emplace();
  if (yields.has_value() && !yields->is_active())
    spdlog::warn("model '{}': its load may delay requests: no timer is left", found.name);
  const LoadOptions options{.between_steps = [&]() -> absl::Status {
                              const auto make_way = [&turn] { turn.MakeWay(); };
                              yields.has_value() ? yields->Pause(make_way) : make_way();
                              if (Stopping()) return absl::CancelledError("the server ends");
                              return settings_.memory == nullptr ? absl::OkStatus()
                                                                 : settings_.memory->CheckLoad();
                            },
                            .serial = true};
  ServedModel loaded = LoadVersion(found, engine_, options);
  if (loaded.state != ModelState::kReady) return loaded;
  const RunOptions run{.interrupted = options.between_steps, .serial = options.serial};
  const absl::Status warmed = RunConfiguredWarmUp(loaded, run);
  if (!warmed.ok()) return NotLoaded(found, warmed);
  const bool has_own = loaded.config->model_warmup_size() > 0;
  const bool warms_up = !has_own && (settings_.warm_up_first || is_replacement);
  if (warms_up) WarmUp(loaded, run);
  for (const Shapes& one : shapes) {
    const bool has_run = warms_up && one == BatchOfOne(loaded.model->signature());
    if (!has_run) WarmUpOn(loaded, one, run);
  }
  if (yields.has_value())
    spdlog::debug("model '{}': its load offered its core {} times", found.name, yields->offers());
  return loaded;
}

// Lets clients see that the load has begun. Readiness stays as it is, and so does an error that is
// tried again by itself.
void Loader::ShowLoading(const ServedModel& found) {
  const ModelRepository::Served now = models_->Peek(found.name, found.version);
  if (now == nullptr || !IsLive(*now)) {
    ServedModel arriving = found;
    arriving.state = ModelState::kArriving;
    arriving.load_status = absl::OkStatus();
    return models_->Publish(std::move(arriving));
  }
  models_->Change(*now, [](ServedModel* shown) {
    const bool failed = shown->state == ModelState::kUnavailable;
    if (shown->model != nullptr) {
      shown->is_loading_next = true;
    } else if (failed && !absl::IsUnavailable(shown->load_status)) {
      shown->state = ModelState::kLoading;
    }
  });
}

void Loader::LoadFound(ServedModel found) {
  found.model = nullptr;
  ShowLoading(found);
  Watched watched;
  watched.loaded = watched.seen = StampOf(found);  // before any of it is read
  ModelRepository::Served replaced = ReplacedBy(found);
  std::vector<Shapes> shapes;
  if (replaced != nullptr) shapes = replaced->model->PlannedShapes();
  if (shapes.size() > kMostShapes) shapes.resize(kMostShapes);
  const bool is_replacement =
      replaced != nullptr && replaced->state == ModelState::kReady && !settings_.unload_first;
  bool unloads = replaced != nullptr && settings_.unload_first;
  replaced = nullptr;  // holds memory no longer
  const absl::Time begin = SteadyNow();
  absl::Status fit = Prove(watched.loaded, shapes, &unloads, &found);
  if (fit.ok() && unloads) UnloadFirst(found);
  if (const auto now = models_->Peek(found.name, found.version)) found.model = now->model;
  if (fit.ok()) fit = BeginLoad(watched.loaded);
  ServedModel loaded = fit.ok() ? LoadNow(found, is_replacement, shapes) : NotLoaded(found, fit);
  EndLoad();
  if (Stopping()) return;
  if (!absl::IsUnavailable(fit)) watched_[KeyOf(found)] = std::move(watched);
  const bool ready = loaded.state == ModelState::kReady;
  Publish(found, is_replacement, std::move(loaded));
  models_->statistics().Loaded(found.name, found.version, ready, SteadyNow() - begin);
}

void Loader::Publish(const ServedModel& found, bool is_replacement, ServedModel loaded) {
  const bool ready = loaded.state == ModelState::kReady;
  const bool warms_up = ready && !settings_.warm_up_first && !is_replacement &&
                        loaded.config->model_warmup_size() == 0;
  if (ready && settings_.loaded) settings_.loaded(loaded);
  if (ready) retired_.Add(found.model);
  Report(found, std::move(loaded));
  if (!ready) LogWhatServesOn(*models_, found.name);
  if (settings_.memory != nullptr) settings_.memory->Update(*models_);
  settings_.changed();
  if (warms_up) warm_up_.Add(found.name, found.version);
}

// A load that failed leaves what serves as it is, with the reason.
void Loader::Report(const ServedModel& found, ServedModel loaded) {
  if (loaded.state == ModelState::kReady || found.model == nullptr) {
    models_->Publish(std::move(loaded));
    return;
  }
  models_->Change(found, [&loaded](ServedModel* now) {
    now->load_status = loaded.load_status;
    now->is_loading_next = false;
  });
}

}  // namespace tilewire::service
