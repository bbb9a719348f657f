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

// Threads take the shards in turn; two may share one.
VersionStatistics::Shard& VersionStatistics::ShardOfThread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kShards;
  return shards_[mine];
}

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
  Shard& shard = ShardOfThread();
  const int64_t input = absl::ToInt64Nanoseconds(times.input);
  const int64_t infer = absl::ToInt64Nanoseconds(times.infer);
  const int64_t output = absl::ToInt64Nanoseconds(times.output);
  AddTo(&shard.values[kSuccess], 1);
  AddTo(&shard.values[kSuccessNs], absl::ToInt64Nanoseconds(total));
  AddTo(&shard.values[kQueueNs], absl::ToInt64Nanoseconds(times.queue));
  AddTo(&shard.values[kInputNs], input);
  AddTo(&shard.values[kInferNs], infer);
  AddTo(&shard.values[kOutputNs], output);
  AddTo(&shard.values[kRows], rows);
  shard.values[kLastMs].store(absl::ToUnixMillis(absl::Now()), std::memory_order_relaxed);
  BatchCounts* const batch = BatchOf(&shard, rows);
  if (batch == nullptr) return;
  AddTo(&batch->runs, 1);
  AddTo(&batch->input_ns, input);
  AddTo(&batch->infer_ns, infer);
  AddTo(&batch->output_ns, output);
}

void VersionStatistics::Failed(absl::Duration total) {
  Shard& shard = ShardOfThread();
  AddTo(&shard.values[kFail], 1);
  AddTo(&shard.values[kFailNs], absl::ToInt64Nanoseconds(total));
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
              .queue = {runs, sums[kQueueNs]},
              .input = {runs, sums[kInputNs]},
              .infer = {runs, sums[kInferNs]},
              .output = {runs, sums[kOutputNs]},
              .rows = sums[kRows],
              .runs = runs,
              .last_ms = sums[kLastMs]};
  for (const auto& [rows, batch] : batches) all.batches.push_back(batch);
  return all;
}

std::shared_ptr<VersionStatistics> Statistics::Of(const std::string& name, int64_t version) {
  threading::MutexLock lock(&mutex_);
  std::shared_ptr<VersionStatistics>& found = all_[{name, version}];
  if (found == nullptr) found = std::make_shared<VersionStatistics>();
  return found;
}

void Statistics::Forget(const std::string& name, int64_t version) {
  threading::MutexLock lock(&mutex_);
  all_.erase({name, version});
}

}  // namespace tilewire::service
