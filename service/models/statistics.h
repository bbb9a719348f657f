// SPDX-License-Identifier: Apache-2.0
//
// Counts and times of the requests of each version of each model, from when the server found it
// until it is gone from disk: they outlive its reloads. Recording is a few additions to numbers
// that a thread shares with few others: no lock, no allocation.
#ifndef SERVICE_MODELS_STATISTICS_H_
#define SERVICE_MODELS_STATISTICS_H_

#include <array>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/time/time.h"
#include "engine/threading/mutex.h"
#include "service/observe/failure_counts.h"
#include "service/observe/histogram.h"
#include "service/observe/refusal.h"
#include "service/observe/thread_shard.h"

namespace tilewire::service {

// Where the time of a run went.
struct RunTimes {
  absl::Duration decode;  // arrived to prepared
  absl::Duration queue;   // prepared to started
  absl::Duration plan;    // started to there being a plan
  absl::Duration input;   // reading inputs into the engine's layouts and writing outputs
  absl::Duration infer;   // the rest of the run
  absl::Duration output;  // building the answer
};

// The counts of one version. Thread-safe.
class VersionStatistics {
 public:
  // More sizes of batches than this get no row of their own.
  static constexpr size_t kMostBatchSizes = 64;

  explicit VersionStatistics(uint32_t number = 0) : number_(number) {}

  // Stands for the version in other records: Statistics::NameOf(). 0: of no version.
  uint32_t number() const { return number_; }

  struct Total {
    int64_t count = 0, ns = 0;
  };
  struct Batch {
    int64_t rows = 0, runs = 0;
    int64_t input_ns = 0, infer_ns = 0, output_ns = 0;  // infer_ns: with the plan
  };
  struct Sums {
    Total success, fail, decode, queue, plan, input, infer, output, write;
    int64_t core_ns = 0;
    int64_t rows = 0, runs = 0;
    int64_t last_ms = 0;         // since 1970, of the last success; 0: none
    std::vector<Batch> batches;  // by rows, ascending
    FailureCounts::Sums ends;    // of all requests: what was answered ended with kOk
  };
  // Durations of the requests that were answered: from arrival to answer; of them waiting; of them
  // running, from the start of the run to the answer.
  struct Durations {
    Histogram request, queue, compute;
  };

  // A request with so many rows was answered, `total` after it came.
  void Succeeded(int64_t rows, const RunTimes& times, absl::Duration total);
  // `refusal`: kNone if it was not refused but failed.
  void Failed(absl::StatusCode code, RequestRefusal refusal, absl::Duration total);

  // A run of the version, answered or not, held cores for so long, all of them together.
  void HeldCores(absl::Duration core_time);
  // A client has taken the answer, or lost it, so long after it was built.
  void Wrote(absl::Duration writing);

  // May lack the last few of those that others record meanwhile.
  Sums Sum() const;
  const Durations& durations() const { return durations_; }

  // The memory that the version held when it was last looked at, and how long its last load took.
  void SetHeldBytes(int64_t bytes) { held_bytes_.store(bytes, std::memory_order_relaxed); }
  int64_t held_bytes() const { return held_bytes_.load(std::memory_order_relaxed); }
  void SetLoadTime(absl::Duration taken) {
    load_ns_.store(absl::ToInt64Nanoseconds(taken), std::memory_order_relaxed);
  }
  absl::Duration load_time() const {
    return absl::Nanoseconds(load_ns_.load(std::memory_order_relaxed));
  }

 private:
  enum Counter : size_t {
    kSuccess,
    kSuccessNs,
    kFail,
    kFailNs,
    kDecodeNs,
    kQueueNs,
    kInputNs,
    kInferNs,
    kOutputNs,
    kPlanNs,
    kWriteNs,
    kCoreNs,
    kRows,
    kLastMs,  // the latest, where the others are sums
    kCounters
  };
  static constexpr int64_t kFree = -1;
  using Value = std::atomic<int64_t>;
  struct BatchCounts {
    Value rows{kFree};
    Value runs{0}, input_ns{0}, infer_ns{0}, output_ns{0};
  };
  struct alignas(64) Shard {
    std::array<Value, kCounters> values = {};
    std::array<BatchCounts, kMostBatchSizes> batches;
  };

  // Null where all are taken by other sizes.
  static BatchCounts* BatchOf(Shard* shard, int64_t rows);

  const uint32_t number_;
  std::array<Shard, kThreadShards> shards_;
  FailureCounts failures_;
  Durations durations_;
  Value held_bytes_{0}, load_ns_{0};
};

// All versions that have been served. Thread-safe.
class Statistics {
 public:
  struct Name {
    std::string model;
    int64_t version = 0;
  };

  // The statistics of a version, made at the first call.
  std::shared_ptr<VersionStatistics> Of(const std::string& name, int64_t version)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The version has gone: what comes back under its name begins anew.
  void Forget(const std::string& name, int64_t version) ABSL_LOCKS_EXCLUDED(mutex_);
  // The version that has or had this number; empty where none had.
  Name NameOf(uint32_t number) const ABSL_LOCKS_EXCLUDED(mutex_);

  // Requests of inference that named no model that there is.
  FailureCounts& unnamed() { return unnamed_; }
  const FailureCounts& unnamed() const { return unnamed_; }
  // Requests that named the model, and no version of it that is served; made at the first call.
  std::shared_ptr<FailureCounts> OfAbsentVersions(const std::string& name)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The model has no versions any more.
  void ForgetModel(const std::string& name) ABSL_LOCKS_EXCLUDED(mutex_);

  // A load of the version has ended.
  void Loaded(const std::string& name, int64_t version, bool ok, absl::Duration taken)
      ABSL_LOCKS_EXCLUDED(mutex_);
  // The ended loads of a model, of all its versions since the start.
  struct Loads {
    int64_t ok = 0, failed = 0;
  };
  std::map<std::string, Loads> loads() const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  FailureCounts unnamed_;
  mutable threading::Mutex mutex_;
  std::vector<Name> names_ ABSL_GUARDED_BY(mutex_);  // of the numbers from 1 up
  std::map<std::pair<std::string, int64_t>, std::shared_ptr<VersionStatistics>> all_
      ABSL_GUARDED_BY(mutex_);
  std::map<std::string, std::shared_ptr<FailureCounts>> absent_ ABSL_GUARDED_BY(mutex_);
  std::map<std::string, Loads> loads_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_MODELS_STATISTICS_H_
