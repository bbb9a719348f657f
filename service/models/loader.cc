// SPDX-License-Identifier: Apache-2.0
#include "service/models/loader.h"

#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <set>

#include "engine/base/status_macros.h"
#include "service/models/model_load.h"
#include "service/observe/steady_time.h"
#include "service/schedule/background_turn.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

constexpr int kNiceness = 10;
// Requests hold their memory for as long as they run and their clients read.
constexpr absl::Duration kLongestWaitForRoom = absl::Minutes(1);
constexpr absl::Duration kRoomPoll = absl::Milliseconds(20);

absl::Status RefuseRequest() {
  return absl::FailedPreconditionError(
      "models are loaded and unloaded as they come to lie on disk, not by request");
}

}  // namespace

Loader::Key Loader::KeyOf(const ServedModel& served) { return {served.name, served.version}; }

Loader::Loader(Engine* engine, ModelRepository* models, Dispatcher* dispatcher,
               Admission* admission, Settings settings)
    : engine_(engine),
      models_(models),
      dispatcher_(dispatcher),
      settings_(std::move(settings)),
      warm_up_(models, dispatcher, admission),
      thread_("tw-load", [this] { Body(); }) {}

void Loader::Stop() {
  threading::MutexLock lock(&mutex_);
  stopping_ = true;
}

void Loader::Rescan() {
  threading::MutexLock lock(&mutex_);
  asked_ = true;
}

void Loader::Load(const std::string&, std::shared_ptr<const inference::ModelConfig>, Done done) {
  done(RefuseRequest());
}

void Loader::Unload(const std::string&, Done done) { done(RefuseRequest()); }

bool Loader::Stopping() const {
  threading::MutexLock lock(&mutex_);
  return stopping_;
}

// Until it is asked, or it is time for a look. Returns whether it was asked.
bool Loader::Wait() {
  threading::MutexLock lock(&mutex_);
  const auto wanted = [this]()
                          ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return stopping_ || asked_; };
  mutex_.AwaitWithTimeout(absl::Condition(&wanted), settings_.look_every);
  return std::exchange(asked_, false);
}

void Loader::Body() {
  setpriority(PRIO_PROCESS, static_cast<id_t>(syscall(SYS_gettid)), kNiceness);
  for (const ModelRepository::Served& served : models_->All()) {
    if (Stopping()) return;
    LoadFound(*served);
  }
  if (Stopping()) return;
  settings_.started();
  while (!Stopping()) {
    std::set<Key> tried;
    const bool asked = Wait() && ScanAgain(&tried);
    for (const ModelRepository::Served& served : models_->All()) {
      if (Stopping()) return;
      if (!tried.contains(KeyOf(*served))) LookAt(served, asked);
    }
    if (settings_.memory != nullptr) settings_.memory->Update(*models_);
    settings_.changed();
  }
}

// Loads what is new, which it adds to `tried`. Returns whether there is something to look at.
bool Loader::ScanAgain(std::set<Key>* tried) {
  const absl::StatusOr<std::vector<ServedModel>> found = settings_.scan();
  if (!found.ok()) {
    spdlog::error("{}; what was loaded before serves on", std::string(found.status().message()));
    return false;
  }
  std::set<Key> keys;
  for (const ServedModel& served : *found) {
    keys.insert(KeyOf(served));
    if (watched_.count(KeyOf(served)) != 0) continue;
    tried->insert(KeyOf(served));
    LoadFound(served);
  }
  for (const ModelRepository::Served& served : models_->All()) {
    if (keys.count(KeyOf(*served)) != 0) continue;
    spdlog::info("model '{}' version {}: gone, no longer served", served->name, served->version);
    models_->Remove(*served);
    watched_.erase(KeyOf(*served));
  }
  return true;
}

void Loader::LookAt(const ModelRepository::Served& served, bool asked) {
  Watched& watched = watched_[KeyOf(*served)];
  FileStamp now = StampOf(*served);
  const bool ready = served->state == ModelState::kReady;
  if (now == watched.loaded) {
    // A version that a request found overwritten is loaded again; one that failed, if asked.
    const bool overwritten = !ready && absl::IsUnavailable(served->load_status);
    if (overwritten || (asked && !ready)) LoadFound(*served);
    return;
  }
  if (ready && !served->model->CheckFiles().ok()) {
    spdlog::warn("model '{}' version {}: its file was written to while it served", served->name,
                 served->version);
    models_->MarkOverwritten(served);
    settings_.changed();
  }
  if (asked || now == watched.seen) {
    LoadFound(*served);
  } else {
    watched.seen = std::move(now);
  }
}

// Until requests hold no more than the load leaves them.
absl::Status Loader::AwaitRoom(const FileStamp& files) {
  if (settings_.memory == nullptr) return absl::OkStatus();
  ABSL_RETURN_IF_ERROR(settings_.memory->BeginLoad(*models_, BytesOfLoad(SizeOf(files))));
  const absl::Time end = SteadyNow() + kLongestWaitForRoom;
  threading::MutexLock lock(&mutex_);
  while (!settings_.memory->HasRoom()) {
    if (stopping_) return absl::CancelledError("the server ends");
    if (SteadyNow() > end) {
      return absl::UnavailableError("requests hold the memory that loading it takes");
    }
    mutex_.AwaitWithTimeout(absl::Condition(&stopping_), kRoomPoll);
  }
  return absl::OkStatus();
}

// With a run that puts its memory in place, if that comes first.
ServedModel Loader::LoadNow(const ServedModel& found) {
  BackgroundTurn turn(dispatcher_);
  const LoadOptions options{.between_steps = [&]() -> absl::Status {
                              turn.MakeWay();
                              if (Stopping()) return absl::CancelledError("the server ends");
                              return settings_.memory == nullptr ? absl::OkStatus()
                                                                 : settings_.memory->CheckLoad();
                            },
                            .serial = true};
  ServedModel loaded = LoadVersion(found, engine_, options);
  if (loaded.state == ModelState::kReady && WarmsUpFirst(found)) {
    WarmUp(loaded, {.interrupted = options.between_steps, .serial = options.serial});
  }
  return loaded;
}

// A version that another one stands in for has time.
bool Loader::WarmsUpFirst(const ServedModel& found) const {
  return settings_.warm_up_first || found.state == ModelState::kReady;
}

void Loader::LoadFound(const ServedModel& found) {
  Watched watched;
  watched.loaded = watched.seen = StampOf(found);  // before any of it is read
  const absl::Status room = AwaitRoom(watched.loaded);
  ServedModel loaded = room.ok() ? LoadNow(found) : NotLoaded(found, room);
  const bool ready = loaded.state == ModelState::kReady;
  if (settings_.memory != nullptr) settings_.memory->EndLoad();
  if (Stopping()) return;
  if (!absl::IsUnavailable(room)) watched_[KeyOf(found)] = std::move(watched);
  if (loaded.state == ModelState::kReady && settings_.loaded) settings_.loaded(loaded);
  Report(found, std::move(loaded));
  if (settings_.memory != nullptr) settings_.memory->Update(*models_);
  settings_.changed();
  if (ready && !WarmsUpFirst(found)) warm_up_.Add(found.name, found.version);
}

// A load that failed leaves what serves as it is, with the reason.
void Loader::Report(const ServedModel& found, ServedModel loaded) {
  if (loaded.state == ModelState::kReady || found.model == nullptr) {
    models_->Publish(std::move(loaded));
    return;
  }
  models_->Change(found, [&loaded](ServedModel* now) { now->load_status = loaded.load_status; });
}

}  // namespace tilewire::service
