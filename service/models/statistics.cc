// SPDX-License-Identifier: Apache-2.0
#include "service/models/statistics.h"

#include <algorithm>

#include "absl/time/clock.h"

namespace tilewire::service {
namespace {

void AddTo(std::atomic<int64_t>* value, int64_t amount) {
  value->fetch_add(amount, std::memory_order_relaxed);
}

int64_t Read(const std::atomic<int64_t>& value) { return value.load(std::memory_order_relaxed); }

}  // namespace

VersionStatistics::BatchCounts* VersionStatistics::BatchOf(Shard* shard, int64_t rows) {
  for (size_t i = 0; i < kMostBatchSizes; ++i) {
    BatchCounts& batch = shard->batches[(rows + i) % kMostBatchSizes];
    int64_t found = Read(batch.rows);
    if (found == kFree &&
        batch.rows.compare_exchange_strong(found, rows, std::memory_order_relaxed)) {
      return &batch;
    }
    if (found == rows) return &batch;
  }
  return nullptr;
}

void VersionStatistics::Succeeded(int64_t rows, const RunTimes& times, absl::Duration total) {
  Shard& shard = shards_[ShardOfThread()];
  const int64_t input = absl::ToInt64Nanoseconds(times.input);
  const int64_t plan = absl::ToInt64Nanoseconds(times.plan);
  const int64_t infer = absl::ToInt64Nanoseconds(times.infer);
  const int64_t output = absl::ToInt64Nanoseconds(times.output);
  AddTo(&shard.values[kSuccess], 1);
  AddTo(&shard.values[kSuccessNs], absl::ToInt64Nanoseconds(total));
  AddTo(&shard.values[kDecodeNs], absl::ToInt64Nanoseconds(times.decode));
  AddTo(&shard.values[kQueueNs], absl::ToInt64Nanoseconds(times.queue));
  AddTo(&shard.values[kInputNs], input);
  AddTo(&shard.values[kInferNs], infer);
  AddTo(&shard.values[kOutputNs], output);
  AddTo(&shard.values[kPlanNs], plan);
  AddTo(&shard.values[kRows], rows);
  shard.values[kLastMs].store(absl::ToUnixMillis(absl::Now()), std::memory_order_relaxed);
  durations_.request.Record(total);
  durations_.queue.Record(times.queue);
  durations_.compute.Record(times.plan + times.input + times.infer + times.output);
  BatchCounts* const batch = BatchOf(&shard, rows);
  if (batch == nullptr) return;
  AddTo(&batch->runs, 1);
  AddTo(&batch->input_ns, input);
  AddTo(&batch->infer_ns, plan + infer);
  AddTo(&batch->output_ns, output);
}

void VersionStatistics::Failed(absl::StatusCode code, RequestRefusal refusal,
                               absl::Duration total) {
  Shard& shard = shards_[ShardOfThread()];
  AddTo(&shard.values[kFail], 1);
  AddTo(&shard.values[kFailNs], absl::ToInt64Nanoseconds(total));
  failures_.Count(code, refusal);
}

void VersionStatistics::HeldCores(absl::Duration core_time) {
  AddTo(&shards_[ShardOfThread()].values[kCoreNs], absl::ToInt64Nanoseconds(core_time));
}

void VersionStatistics::Wrote(absl::Duration writing) {
  AddTo(&shards_[ShardOfThread()].values[kWriteNs], absl::ToInt64Nanoseconds(writing));
}

VersionStatistics::Sums VersionStatistics::Sum() const {
  std::array<int64_t, kCounters> sums = {};
  std::map<int64_t, Batch> batches;
  for (const Shard& shard : shards_) {
    for (size_t i = 0; i < kLastMs; ++i) sums[i] += Read(shard.values[i]);
    sums[kLastMs] = std::max(sums[kLastMs], Read(shard.values[kLastMs]));
    for (const BatchCounts& counts : shard.batches) {
      const int64_t rows = Read(counts.rows);
      if (rows == kFree || Read(counts.runs) == 0) continue;
      Batch& batch = batches[rows];
      batch.rows = rows;
      batch.runs += Read(counts.runs);
      batch.input_ns += Read(counts.input_ns);
      batch.infer_ns += Read(counts.infer_ns);
      batch.output_ns += Read(counts.output_ns);
    }
  }
  const int64_t runs = sums[kSuccess];
  Sums all = {.success = {runs, sums[kSuccessNs]},
              .fail = {sums[kFail], sums[kFailNs]},
              .decode = {runs, sums[kDecodeNs]},
              .queue = {runs, sums[kQueueNs]},
              .plan = {runs, sums[kPlanNs]},
              .input = {runs, sums[kInputNs]},
              .infer = {runs, sums[kInferNs]},
              .output = {runs, sums[kOutputNs]},
              .write = {runs, sums[kWriteNs]},
              .core_ns = sums[kCoreNs],
              .rows = sums[kRows],
              .runs = runs,
              .last_ms = sums[kLastMs],
              .ends = failures_.Sum()};
  for (const auto& [rows, batch] : batches) all.batches.push_back(batch);
  all.ends.by_code[static_cast<size_t>(absl::StatusCode::kOk)] = runs;
  return all;
}

std::shared_ptr<VersionStatistics> Statistics::Of(const std::string& name, int64_t version) {
  threading::MutexLock lock(&mutex_);
  std::shared_ptr<VersionStatistics>& found = all_[{name, version}];
  if (found != nullptr) return found;
  names_.push_back({name, version});
  found = std::make_shared<VersionStatistics>(static_cast<uint32_t>(names_.size()));
  return found;
}

Statistics::Name Statistics::NameOf(uint32_t number) const {
  threading::MutexLock lock(&mutex_);
  return number == 0 || number > names_.size() ? Name() : names_[number - 1];
}

void Statistics::Forget(const std::string& name, int64_t version) {
  threading::MutexLock lock(&mutex_);
  all_.erase({name, version});
}

std::shared_ptr<FailureCounts> Statistics::OfAbsentVersions(const std::string& name) {
  threading::MutexLock lock(&mutex_);
  std::shared_ptr<FailureCounts>& found = absent_[name];
  if (found == nullptr) found = std::make_shared<FailureCounts>();
  return found;
}

void Statistics::ForgetModel(const std::string& name) {
  threading::MutexLock lock(&mutex_);
  absent_.erase(name);
}

void Statistics::Loaded(const std::string& name, int64_t version, bool ok, absl::Duration taken) {
  threading::MutexLock lock(&mutex_);
  Loads& loads = loads_[name];
  ++(ok ? loads.ok : loads.failed);
  const auto found = all_.find({name, version});
  if (ok && found != all_.end()) found->second->SetLoadTime(taken);
}

std::map<std::string, Statistics::Loads> Statistics::loads() const {
  threading::MutexLock lock(&mutex_);
  return loads_;
}

}  // namespace tilewire::service
