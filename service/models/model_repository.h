// SPDX-License-Identifier: Apache-2.0
//
// The models that this server serves, by name and version. Readers share an immutable snapshot;
// each change publishes the next, and what runs holds the version that it began with. Thread-safe.
#ifndef SERVICE_MODELS_MODEL_REPOSITORY_H_
#define SERVICE_MODELS_MODEL_REPOSITORY_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/threading/mutex.h"
#include "service/models/served_model.h"
#include "service/models/statistics.h"

namespace tilewire::service {

class ModelRepository {
 public:
  using Served = std::shared_ptr<const ServedModel>;

  ModelRepository() : ModelRepository(std::vector<ServedModel>()) {}
  // Holds the models that ScanDirectory() or ScanFile() found; none is loaded.
  explicit ModelRepository(std::vector<ServedModel> found);

  // `version` empty: the highest that is ready, or the highest if none is. Never null.
  //   kNotFound         no such model or version, or none that is live
  //   kInvalidArgument  no name, or a version that is not an integer
  absl::StatusOr<Served> Find(absl::string_view name, absl::string_view version) const;
  // Find(), and the model is ready.
  //   the errors of Usable()
  absl::StatusOr<Served> FindLoaded(absl::string_view name, absl::string_view version) const;

  // A request that Find() has no version for has ended: counts it for the model of that name, in
  // whatever state its versions are, or as one that named none. Takes no lock.
  void CountUnserved(absl::string_view name, absl::StatusCode code, RequestRefusal refusal);

  // The version in whatever state it is; null if there is none.
  Served Peek(const std::string& name, int64_t version) const;

  std::vector<std::string> Names() const;                       // of models with a live version
  std::vector<int64_t> Versions(absl::string_view name) const;  // live ones, ascending
  std::vector<Served> All() const;                              // by name, then version
  // See Statistics::NameOf().
  Statistics::Name NameOf(uint32_t number) const { return statistics_.NameOf(number); }
  // Whether every live version of every model is. One that failed to load while another stands in
  // for it does not count: a bad version takes no replica away.
  bool AllReady() const { return NotReady().empty(); }
  // The versions for want of which not every model is ready.
  std::vector<Served> NotReady() const;
  bool AnyReady() const;  // a version of a model

  // Adds a version, or puts it in the place of the one with its name and number.
  void Publish(ServedModel served) ABSL_LOCKS_EXCLUDED(writing_);
  // Lets `change` alter the version with that name and number, if it is still there.
  void Change(const ServedModel& served, absl::FunctionRef<void(ServedModel*)> change)
      ABSL_LOCKS_EXCLUDED(writing_);
  void Remove(const ServedModel& served) ABSL_LOCKS_EXCLUDED(writing_);
  // Leaves of the version with that name and number what is on disk: it is kUnloaded.
  void Unload(const ServedModel& served) ABSL_LOCKS_EXCLUDED(writing_);
  // Marks a version whose file was written to, and which therefore cannot take every shape any
  // more, as kUnavailable until it is loaded again. Does nothing if another has replaced it.
  void MarkOverwritten(const Served& served) ABSL_LOCKS_EXCLUDED(writing_);
  // The status to answer a client with when Model::Run() or Model::Explain() returned `status`:
  // kUnavailable where the model's file was overwritten, which is then marked.
  absl::Status AfterRun(const Served& served, const absl::Status& status)
      ABSL_LOCKS_EXCLUDED(writing_);

  // The counts of all versions; each ServedModel has its own.
  Statistics& statistics() { return statistics_; }
  const Statistics& statistics() const { return statistics_; }

 private:
  using ModelVersions = std::map<int64_t, Served>;
  using Snapshot = std::map<std::string, ModelVersions, std::less<>>;

  // A snapshot for as long as the reader keeps this. Only one that has a name can be looked into: a
  // loop over *snapshot() would go on in what the next writer has freed.
  class Kept {
   public:
    explicit Kept(std::shared_ptr<const Snapshot> snapshot) : snapshot_(std::move(snapshot)) {}
    const Snapshot& operator*() const& { return *snapshot_; }
    const Snapshot* operator->() const& { return snapshot_.get(); }
    void operator*() const&& = delete;
    void operator->() const&& = delete;

   private:
    std::shared_ptr<const Snapshot> snapshot_;
  };

  static Served Best(const ModelVersions& versions);
  Kept snapshot() const { return Kept(snapshot_.load()); }

  // Gives it its statistics, which outlive it.
  std::shared_ptr<const ServedModel> Counted(ServedModel served);

  Statistics statistics_;
  threading::Mutex writing_;
  std::atomic<std::shared_ptr<const Snapshot>> snapshot_;
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_MODEL_REPOSITORY_H_
