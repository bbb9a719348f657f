// SPDX-License-Identifier: Apache-2.0
//
// Where the time of a plan's runs went: a sum of nanoseconds for each row, which is an input, a
// step or an output, in that order, and how many runs there were. Runs add to it without a lock,
// each thread to one of a few copies. Thread-safe.
#ifndef ENGINE_RUNTIME_STEP_TIMES_H_
#define ENGINE_RUNTIME_STEP_TIMES_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/runtime/plan.h"

namespace tilewire::runtime {

class StepTimes {
 public:
  using Sum = std::atomic<int64_t>;

  // Sums that are read while runs add may lack the last few of them.
  struct Sums {
    int64_t runs = 0;             // that came to their end
    std::vector<int64_t> row_ns;  // with what runs took that ended early
  };

  explicit StepTimes(const Plan& plan);
  StepTimes(const StepTimes&) = delete;

  // The sums that the calling thread adds to, one per row.
  Sum* OfThread() { return &sums_[ShardOfThread() * stride_]; }
  // A run, whose times were added to `of_thread`, came to its end.
  void CountRun(Sum* of_thread) const { of_thread[rows_].fetch_add(1, std::memory_order_relaxed); }

  Sums Read() const;
  int64_t HeldBytes() const { return static_cast<int64_t>(sums_.size() * sizeof(Sum)); }

 private:
  static size_t Shards();
  static size_t ShardOfThread();

  const size_t rows_;
  const size_t stride_;    // from one shard to the next: whole cache lines
  std::vector<Sum> sums_;  // the rows, then the runs, of each shard
};

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_STEP_TIMES_H_
