// SPDX-License-Identifier: Apache-2.0
//
// Loads models on a thread of low priority, one at a time, as background work of the dispatcher,
// while the server already answers; then watches their files.
//
//   a file that was replaced   (renamed over: mv, rsync) is loaded beside the version that serves,
//                              which is replaced when the load has succeeded; if it fails, the old
//                              version serves on, and the repository's index gives the reason
//   a file that was written to (cp, tar) makes its version unavailable as soon as it no longer
//                              holds what further shapes need, and is loaded as well
//
// A changed file is loaded once it has stayed the same for one look. A version that nothing stands
// in for serves as soon as it is loaded, and warms up afterwards; one that replaces another warms
// up before.
#ifndef SERVICE_MODELS_LOADER_H_
#define SERVICE_MODELS_LOADER_H_

#include <functional>
#include <map>
#include <memory>
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
#include "service/models/warm_up.h"
#include "service/schedule/dispatcher.h"

namespace tilewire::service {

// Thread-safe.
class Loader final : public ModelControl {
 public:
  struct Settings {
    // Lists the models to be served now; called again for Rescan().
    std::function<absl::StatusOr<std::vector<ServedModel>>()> scan;
    absl::Duration look_every = absl::Seconds(1);
    // Whether a model is ready only once it has run (warm_up.h); else it runs in the background.
    bool warm_up_first = false;
    // Called on the loading thread: once, when everything that was found at the start has been
    // tried; and after a model's state may have changed.
    std::function<void()> started;
    std::function<void()> changed;
    // Called there too, for each version that has loaded. May be empty.
    std::function<void(const ServedModel& loaded)> loaded = {};
    ModelMemory* memory = nullptr;  // what loads may take; null: all there is
  };

  // Begins to load what `models` found. All that is pointed to must outlive this object.
  Loader(Engine* engine, ModelRepository* models, Dispatcher* dispatcher, Admission* admission,
         Settings settings);
  // Waits for the step of a load that runs.
  ~Loader() override { Stop(); }
  // From now on no load begins, and one that runs ends with its step.
  void Stop() ABSL_LOCKS_EXCLUDED(mutex_);

  // Scans again, soon: models and versions that are new are loaded and then served, those that have
  // gone are no longer served, those that have changed or failed are loaded again.
  void Rescan() ABSL_LOCKS_EXCLUDED(mutex_);

  // Models are loaded as they lie on disk: both are refused.
  void Load(const std::string& name, std::shared_ptr<const inference::ModelConfig> config,
            Done done) override;
  void Unload(const std::string& name, Done done) override;

 private:
  using Key = std::pair<std::string, int64_t>;  // name and version
  static Key KeyOf(const ServedModel& served);

  // The stamp of a version's files when it was last loaded, and at the last look.
  struct Watched {
    FileStamp loaded, seen;
  };

  void Body();
  bool Wait() ABSL_LOCKS_EXCLUDED(mutex_);
  bool Stopping() const ABSL_LOCKS_EXCLUDED(mutex_);
  bool ScanAgain(std::set<Key>* tried);
  void LookAt(const ModelRepository::Served& served, bool asked);
  void LoadFound(const ServedModel& found);
  absl::Status AwaitRoom(const FileStamp& files) ABSL_LOCKS_EXCLUDED(mutex_);
  ServedModel LoadNow(const ServedModel& found);
  bool WarmsUpFirst(const ServedModel& found) const;
  void Report(const ServedModel& found, ServedModel loaded);

  Engine* const engine_;
  ModelRepository* const models_;
  Dispatcher* const dispatcher_;
  const Settings settings_;
  mutable threading::Mutex mutex_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool asked_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<Key, Watched> watched_;  // of the loading thread
  BackgroundWarmUp warm_up_;
  threading::BackgroundThread thread_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_LOADER_H_
