// SPDX-License-Identifier: Apache-2.0
//
// Loads models on a thread of its own, one at a time, as background work of the dispatcher,
// while the server already answers; then follows what lies on disk, or what clients ask for.
//
//   a file that was replaced   (renamed over: mv, rsync) is loaded beside the version that serves,
//                              which is replaced when the load has succeeded; if it fails, the old
//                              version serves on, and the repository's index gives the reason
//   a file that was written to (cp, tar) makes its version unavailable as soon as it no longer
//                              holds what further shapes need, and is loaded as well
//   a new version              is loaded, and then those that the model's version policy leaves out
//                              or whose folder has gone no longer serve; until then they do
//
// Files are loaded once they have stayed the same for one look, and never from a version's folder
// that holds a file ".loading". A version that nothing stands in for serves as soon as it is
// loaded, and warms up afterwards, unless its settings name requests to warm up with; one that
// replaces another warms up before, on the shapes that the other one has served. What is loaded
// after the start has proved itself in another process before (trial.h). The memory of what serves
// no more is given back by the loading thread, in pieces.
#ifndef SERVICE_MODELS_LOADER_H_
#define SERVICE_MODELS_LOADER_H_

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "engine/engine.h"
#include "engine/threading/background_thread.h"
#include "engine/threading/mutex.h"
#include "service/models/file_stamp.h"
#include "service/models/model_control.h"
#include "service/models/model_memory.h"
#include "service/models/model_repository.h"
#include "service/models/repository_scan.h"
#include "service/models/retired_models.h"
#include "service/models/trial/trial.h"
#include "service/models/uploads/served_uploads.h"
#include "service/models/warm_up.h"
#include "service/schedule/dispatcher.h"

namespace tilewire::service {

// Who decides which models are loaded after the start.
enum class ControlMode : uint8_t {
  kNone,      // only Rescan(), which loads what is new
  kPoll,      // the disk, which is scanned at every look
  kExplicit,  // clients, by Load() and Unload()
};

// Thread-safe.
class Loader final : public ModelControl {
 public:
  struct Settings {
    // Lists the models to be served now, or one of them. Called again for each scan.
    std::function<absl::StatusOr<std::vector<ServedModel>>(const ScanScope& scope)> scan;
    absl::Duration look_every = absl::Seconds(1);
    ControlMode mode = ControlMode::kPoll;
    // Whether what serves goes before what replaces it is loaded, for want of memory for both.
    bool unload_first = false;
    // Whether a model is ready only once it has run (warm_up.h); else it runs in the background.
    bool warm_up_first = false;
    // Called on the loading thread: once, when everything that was found at the start has been
    // tried; and after a model's state may have changed.
    std::function<void()> started;
    std::function<void()> changed;
    // Called there too, for each version that has loaded. May be empty.
    std::function<void(const ServedModel& loaded)> loaded = {};
    ModelMemory* memory = nullptr;  // what loads may take; null: all there is
    // Tries out each version that is loaded after the start; null: they are loaded at once.
    const Trial* trial = nullptr;
    UploadFolder* uploads = nullptr;  // where files that clients send are stored; null: nowhere
  };

  // Begins to load what `models` found and does not hold as kUnloaded. All that is pointed to must
  // outlive this object.
  Loader(Engine* engine, ModelRepository* models, Dispatcher* dispatcher, Admission* admission,
         Settings settings);
  // Waits for the step of a load that runs, and ends requests that wait with kCancelled.
  ~Loader() override;
  // From now on no load begins, and one that runs ends with its step.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Scans again, soon: models and versions that are new are loaded and then served, those that have
  // gone are no longer served, those that have changed or failed are loaded again. Does nothing in
  // mode kExplicit.
  void Rescan() ABSL_LOCKS_EXCLUDED(mutex_);

  void Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
            std::vector<UploadedFile> files, Done done) override ABSL_LOCKS_EXCLUDED(mutex_);
  bool TakesRequests() const override { return settings_.mode == ControlMode::kExplicit; }
  int64_t MostUploadBytes() const override {
    return settings_.uploads == nullptr ? 0 : settings_.uploads->most_bytes();
  }
  void Unload(const std::string& name, Done done) override ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  using Key = std::pair<std::string, int64_t>;  // name and version
  static Key KeyOf(const ServedModel& served);

  struct Watched {
    FileStamp loaded, seen;  // of a version when it was last loaded, and at the last look
  };
  struct Request {
    bool load = false;  // else unload
    std::string name;
    std::shared_ptr<const inference::ModelConfig> config;
    std::vector<UploadedFile> files;
    Done done;
  };
  // An unload whose runs have not ended.
  struct Ending {
    std::string name;
    std::vector<int64_t> versions;
    std::vector<const Model*> models;
    int64_t bytes = 0;  // that the models held
    bool is_upload = false;
    Done done;
  };

  void Body();
  void Start();
  bool Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Duration LongestWait() const;
  void Look(bool asked);
  std::optional<ServedModel> LookAt(const Key& key, bool asked);

  bool ScanAgain(bool asked, std::set<Key>* tried);
  bool HasSettled(const ServedModel& served, std::map<Key, FileStamp>* unsettled) const;
  void SetWanted(const std::vector<ServedModel>& found, const std::string& only);
  bool IsWanted(const ServedModel& served) const;
  bool AllWanted(const std::string& name, bool (*holds)(const ServedModel&)) const;
  void Retire(const std::string& only);
  void Forget(const ModelRepository::Served& served);
  bool FreeRetired();

  // In loader_loads.cc, those of trials in loader_trials.cc.
  void LoadFound(ServedModel found);
  void ShowLoading(const ServedModel& found);
  absl::Status AwaitRoom() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status BeginLoad(const FileStamp& files);
  void EndLoad();
  ServedModel LoadNow(const ServedModel& found, bool is_replacement,
                      const std::vector<Shapes>& shapes);
  ModelRepository::Served ReplacedBy(const ServedModel& found) const;
  void UnloadFirst(const ServedModel& found) ABSL_LOCKS_EXCLUDED(mutex_);
  void Publish(const ServedModel& found, bool is_replacement, ServedModel loaded);
  void Report(const ServedModel& found, ServedModel loaded);
  absl::Status BeginTrial(const FileStamp& files, TrialMemory* memory);
  absl::Status RunTrial(const FileStamp& files, const TrialMemory& memory,
                        const std::vector<Shapes>& shapes, ServedModel* found);
  absl::Status Prove(const FileStamp& files, const std::vector<Shapes>& shapes, bool* unloads,
                     ServedModel* found);

  // In loader_requests.cc.
  void Submit(Request request) ABSL_LOCKS_EXCLUDED(mutex_);
  void ServeRequests() ABSL_LOCKS_EXCLUDED(mutex_);
  absl::Status LoadByRequest(Request* request);
  absl::Status LoadScanned(const std::string& name, const ScanScope& scope);
  std::vector<const Model*> ModelsOf(const std::string& name) const;
  void ListAgain(const std::string& name);
  absl::Status LoadVersionByRequest(ServedModel found);
  void BeginUnload(Request request);
  void EndUnloads();
  void CancelRequests() ABSL_LOCKS_EXCLUDED(mutex_);

  Engine* const engine_;
  ModelRepository* const models_;
  Dispatcher* const dispatcher_;
  const Settings settings_;
  mutable threading::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  std::deque<Request> requests_ ABSL_GUARDED_BY(mutex_);
  // The rest belongs to the loading thread.
  std::map<Key, Watched> watched_;
  std::map<Key, FileStamp> new_;                     // not loaded yet, as at the last look
  std::map<std::string, std::set<int64_t>> wanted_;  // versions of each model, by the last scan
  std::string scan_error_;                           // of the last scan
  absl::Time next_look_ = absl::InfinitePast();
  bool has_started_ = false;  // all that was found at the start has been tried
  RetiredModels retired_;
  std::vector<Ending> endings_;
  ServedUploads uploads_;
  BackgroundWarmUp warm_up_;
  threading::BackgroundThread thread_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_LOADER_H_
