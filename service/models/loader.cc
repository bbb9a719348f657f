// SPDX-License-Identifier: Apache-2.0
#include "service/models/loader.h"

#include <malloc.h>

#include <algorithm>
#include <filesystem>

#include "service/models/niceness.h"
#include "service/observe/steady_time.h"
#include "service/schedule/yield_often.h"
#include "spdlog/spdlog.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

// How long the end of the last run on a model that serves no more may go unnoticed.
constexpr absl::Duration kRetiredPoll = absl::Milliseconds(20);
// How long a piece of memory that is given back waits for requests.
constexpr absl::Duration kLongestPauseOfFree = absl::Milliseconds(10);
// How long malloc_trim() waits for a moment without requests: it holds locks of the allocator.
constexpr absl::Duration kLongestPauseOfTrim = absl::Milliseconds(200);

// Whether who copies the files of a version has said that they are not complete.
bool IsHeldBack(const ServedModel& served) {
  std::error_code error;
  return !served.folder.empty() && fs::exists(fs::path(served.folder) / ".loading", error);
}

// Whether the files of a version are no longer on disk; one that is not seen, for want of rights,
// is there.
bool HasGone(const ServedModel& served) {
  std::error_code error;
  return !fs::exists(served.folder.empty() ? served.path : served.folder, error) && !error;
}

bool IsReady(const ServedModel& served) { return served.state == ModelState::kReady; }

// Whether a version serves, or has failed to load and is not loaded again by itself.
bool IsTried(const ServedModel& served) {
  return IsReady(served) ||
         (served.state == ModelState::kUnavailable && !absl::IsUnavailable(served.load_status));
}

}  // namespace

Loader::Key Loader::KeyOf(const ServedModel& served) { return {served.name, served.version}; }

Loader::Loader(Engine* engine, ModelRepository* models, Dispatcher* dispatcher,
               Admission* admission, Settings settings)
    : engine_(engine),
      models_(models),
      dispatcher_(dispatcher),
      settings_(std::move(settings)),
      uploads_(settings_.uploads),
      warm_up_(models, dispatcher, admission),
      thread_("tw-load", [this] { Body(); }) {}

Loader::~Loader() { Stop(); }

void Loader::Stop() {
  threading::MutexLock lock(&mutex_);
  stopping_ = true;
}

void Loader::Rescan() {
  if (settings_.mode == ControlMode::kExplicit) return;
  threading::MutexLock lock(&mutex_);
  asked_ = true;
}

bool Loader::Stopping() const {
  threading::MutexLock lock(&mutex_);
  return stopping_;
}

absl::Duration Loader::LongestWait() const {
  const absl::Duration until_look = next_look_ - SteadyNow();
  return retired_.empty() ? until_look : std::min(until_look, kRetiredPoll);
}

// Until it is asked, something is requested, or it is time for a look. Returns whether it was
// asked.
bool Loader::Wait() {
  const absl::Duration longest = LongestWait();
  threading::MutexLock lock(&mutex_);
  const auto wanted = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return stopping_ || asked_ || !requests_.empty();
  };
  mutex_.AwaitWithTimeout(absl::Condition(&wanted), longest);
  return std::exchange(asked_, false);
}

void Loader::Body() {
  AskForOrdinarySlices();
  Start();
  LowerPriorityOfThisThread(getpid());
  while (!Stopping()) {
    const bool asked = Wait();
    if (Stopping()) break;
    ServeRequests();
    FreeRetired();
    uploads_.RemoveUnused(retired_);
    EndUnloads();
    if (asked || SteadyNow() >= next_look_) Look(asked);
  }
  CancelRequests();
}

void Loader::Start() {
  const std::vector<ModelRepository::Served> all = models_->All();
  for (const ModelRepository::Served& served : all) {
    if (served->state != ModelState::kUnloaded) wanted_[served->name].insert(served->version);
  }
  for (const ModelRepository::Served& served : all) {
    if (Stopping()) return;
    if (IsWanted(*served) && !IsHeldBack(*served)) LoadFound(*served);
  }
  if (Stopping()) return;
  has_started_ = true;
  settings_.started();
  next_look_ = SteadyNow() + settings_.look_every;
}

void Loader::Look(bool asked) {
  next_look_ = SteadyNow() + settings_.look_every;
  std::set<Key> tried;
  const bool scans = asked || settings_.mode == ControlMode::kPoll;
  const bool scanned = scans && ScanAgain(asked, &tried);
  std::vector<Key> keys;  // nothing here holds a model whose memory a load waits for
  for (const ModelRepository::Served& served : models_->All()) keys.push_back(KeyOf(*served));
  for (const Key& key : keys) {
    if (Stopping()) return;
    if (tried.contains(key)) continue;
    std::optional<ServedModel> changed = LookAt(key, asked && scanned);
    if (changed.has_value()) LoadFound(*std::move(changed));
  }
  if (settings_.memory != nullptr) settings_.memory->Update(*models_);
  settings_.changed();
}

// Loads what is new, which it adds to `tried`. Returns whether there is something to look at.
bool Loader::ScanAgain(bool asked, std::set<Key>* tried) {
  const absl::StatusOr<std::vector<ServedModel>> found = settings_.scan({});
  if (!found.ok()) {
    const bool is_empty = absl::IsNotFound(found.status()) && models_->All().empty();
    if (is_empty && !asked) return true;  // nothing has come yet
    const std::string error(found.status().message());
    if (asked || error != scan_error_) spdlog::error("{}; what was loaded before serves on", error);
    scan_error_ = error;
    return false;
  }
  scan_error_.clear();
  SetWanted(*found, "");
  std::map<Key, FileStamp> unsettled;
  for (const ServedModel& served : *found) {
    if (Stopping()) return false;
    const Key key = KeyOf(served);
    if (watched_.count(key) != 0 || IsHeldBack(served)) continue;
    if (!asked && !HasSettled(served, &unsettled)) continue;
    tried->insert(key);
    LoadFound(served);
  }
  new_ = std::move(unsettled);
  Retire("");
  return true;
}

// Whether the files of a version that is new are complete as far as can be seen: they are there,
// and were the same at the last look. What they are now is added to `unsettled`.
bool Loader::HasSettled(const ServedModel& served, std::map<Key, FileStamp>* unsettled) const {
  std::error_code error;
  if (!served.folder.empty() && fs::is_empty(served.folder, error)) return false;
  const Key key = KeyOf(served);
  const FileStamp& now = (*unsettled)[key] = StampOf(served);
  const auto before = new_.find(key);
  return before != new_.end() && before->second == now;
}

void Loader::SetWanted(const std::vector<ServedModel>& found, const std::string& only) {
  if (only.empty()) {
    wanted_.clear();
  } else {
    wanted_.erase(only);
  }
  for (const ServedModel& served : found) wanted_[served.name].insert(served.version);
}

bool Loader::IsWanted(const ServedModel& served) const {
  const auto versions = wanted_.find(served.name);
  return versions != wanted_.end() && versions->second.count(served.version) != 0;
}

// Whether this holds of each version that is to be served.
bool Loader::AllWanted(const std::string& name, bool (*holds)(const ServedModel&)) const {
  const auto versions = wanted_.find(name);
  if (versions == wanted_.end()) return true;
  return std::all_of(versions->second.begin(), versions->second.end(), [&](int64_t version) {
    const ModelRepository::Served served = models_->Peek(name, version);
    return served != nullptr && holds(*served);
  });
}

// Withdraws the versions that have gone from disk or are no longer wanted: those of `only` or, if
// it is empty, of all models. Such a version stands in for a wanted one until that one serves; one
// that has gone, not for one that has failed.
void Loader::Retire(const std::string& only) {
  for (const ModelRepository::Served& served : models_->All()) {
    if (IsWanted(*served) || (!only.empty() && served->name != only)) continue;
    const bool serves = served->state != ModelState::kUnloaded;
    const bool has_gone = HasGone(*served);
    if (has_gone && (!IsReady(*served) || AllWanted(served->name, IsTried))) {
      if (serves)
        spdlog::info("model '{}' version {}: gone, no longer served", served->name,
                     served->version);
      models_->Remove(*served);
      Forget(served);
    } else if (!has_gone && serves && AllWanted(served->name, IsReady)) {
      spdlog::info("model '{}' version {}: no longer served, by its version policy", served->name,
                   served->version);
      models_->Unload(*served);
      Forget(served);
    } else if (serves && !served->stands_in) {
      if (has_gone)
        spdlog::info("model '{}' version {}: gone, serves on until what replaces it is loaded",
                     served->name, served->version);
      models_->Change(*served, [](ServedModel* now) { now->stands_in = true; });
    }
  }
}

void Loader::Forget(const ModelRepository::Served& served) {
  watched_.erase(KeyOf(*served));
  retired_.Add(served->model);
}

// The memory of what serves no more and has no run left. Returns whether there was any.
bool Loader::FreeRetired() {
  if (retired_.empty()) return false;
  const YieldOften yields;
  const auto make_way = [&] {
    yields.Pause([this] { dispatcher_->AwaitNothingWaits(kLongestPauseOfFree); });
  };
  if (!retired_.FreeUnused(make_way)) return false;
  dispatcher_->AwaitIdle(kLongestPauseOfTrim);
  malloc_trim(0);
  return true;
}

// Returns the version if it is to be loaded again.
std::optional<ServedModel> Loader::LookAt(const Key& key, bool asked) {
  const ModelRepository::Served served = models_->Peek(key.first, key.second);
  if (served == nullptr || !IsLive(*served)) return std::nullopt;
  if (!IsWanted(*served) && HasGone(*served)) return std::nullopt;  // it only stands in
  const bool loads = asked || settings_.mode == ControlMode::kPoll;
  Watched& watched = watched_[key];
  FileStamp now = StampOf(*served);
  const bool ready = served->state == ModelState::kReady;
  if (now == watched.loaded) {
    // A version that a request found overwritten is loaded again; one that failed, if asked.
    const bool overwritten = !ready && absl::IsUnavailable(served->load_status);
    const bool again = loads && (overwritten || (asked && !ready));
    return again ? std::optional(*served) : std::nullopt;
  }
  const bool is_news = now != watched.seen;
  if (ready && (is_news || loads) && !served->model->CheckFiles().ok()) {
    spdlog::warn("model '{}' version {}: its file was written to while it served", served->name,
                 served->version);
    models_->MarkOverwritten(served);
    settings_.changed();
  }
  watched.seen = std::move(now);
  const bool again = (asked || (loads && !is_news)) && !IsHeldBack(*served);
  return again ? std::optional(*served) : std::nullopt;
}

}  // namespace tilewire::service
