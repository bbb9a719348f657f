// SPDX-License-Identifier: Apache-2.0
#include "engine/runtime/step_times.h"

#include <algorithm>
#include <thread>

namespace tilewire::runtime {
namespace {

constexpr size_t kMostShards = 16;
constexpr size_t kSumsPerLine = 64 / sizeof(StepTimes::Sum);

size_t WholeLines(size_t sums) { return (sums + kSumsPerLine - 1) / kSumsPerLine * kSumsPerLine; }

}  // namespace

StepTimes::StepTimes(const Plan& plan)
    : rows_(plan.inputs.size() + plan.steps.size() + plan.outputs.size()),
      stride_(WholeLines(rows_ + 1)),
      sums_(stride_ * Shards()) {}

size_t StepTimes::Shards() {
  static const size_t shards =
      std::clamp<size_t>(std::thread::hardware_concurrency(), 1, kMostShards);
  return shards;
}

// Threads take the shards in turn; two may share one.
size_t StepTimes::ShardOfThread() {
  static std::atomic<size_t> next{0};
  thread_local const size_t mine = next.fetch_add(1, std::memory_order_relaxed) % Shards();
  return mine;
}

StepTimes::Sums StepTimes::Read() const {
  Sums all;
  all.row_ns.resize(rows_);
  for (size_t first = 0; first < sums_.size(); first += stride_) {
    for (size_t row = 0; row < rows_; ++row)
      all.row_ns[row] += sums_[first + row].load(std::memory_order_relaxed);
    all.runs += sums_[first + rows_].load(std::memory_order_relaxed);
  }
  return all;
}

}  // namespace tilewire::runtime
