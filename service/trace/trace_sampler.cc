// SPDX-License-Identifier: Apache-2.0
#include "service/trace/trace_sampler.h"

namespace tilewire::service {

bool TraceSampler::Take(bool client_traces_it) {
  if (!client_traces_it) {
    const uint64_t before = asked_.fetch_add(1, std::memory_order_relaxed);
    if (before % rate_.load(std::memory_order_relaxed) != 0) return false;
  }
  return TakeOne();
}

bool TraceSampler::TakeOne() {
  int64_t left = left_.load(std::memory_order_relaxed);
  while (left > 0 && !left_.compare_exchange_weak(left, left - 1, std::memory_order_relaxed)) {
  }
  return left != 0;
}

void TraceSampler::Change(const TraceChange& change) {
  if (change.rate) rate_.store(*change.rate, std::memory_order_relaxed);
  if (change.count) left_.store(*change.count, std::memory_order_relaxed);
  if (change.on) on_.store(*change.on, std::memory_order_relaxed);
}

TraceTerms TraceSampler::terms() const {
  return {.on = on_.load(std::memory_order_relaxed),
          .rate = rate_.load(std::memory_order_relaxed),
          .count = left_.load(std::memory_order_relaxed)};
}

}  // namespace tilewire::service
