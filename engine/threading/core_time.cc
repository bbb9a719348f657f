// SPDX-License-Identifier: Apache-2.0
#include "engine/threading/core_time.h"

#include <x86intrin.h>

#include <algorithm>
#include <utility>

namespace tilewire::threading {
namespace {

thread_local CoreTime* work_of_thread = nullptr;

int64_t Ticks() { return static_cast<int64_t>(__rdtsc()); }

// Clocks of two cores may differ by a little, and a thread may move between them.
int64_t TicksSince(int64_t start) { return std::max<int64_t>(0, Ticks() - start); }

}  // namespace

CoreTime::CoreTime() : outer_(std::exchange(work_of_thread, this)), start_(Ticks()) {}

CoreTime::~CoreTime() {
  work_of_thread = outer_;
  if (outer_ != nullptr) outer_->others_.fetch_sub(TicksSince(start_), std::memory_order_relaxed);
}

double CoreTime::Cores() const {
  const auto own = static_cast<double>(TicksSince(start_));
  const auto others = static_cast<double>(others_.load(std::memory_order_relaxed));
  return own <= 0 ? 1 : std::max(0.0, 1 + others / own);
}

CoreTime* CoreTime::OfThread() { return work_of_thread; }

Helping::Helping(CoreTime* work)
    : work_(work == work_of_thread ? nullptr : work),
      outer_(work_of_thread),
      start_(work_ == nullptr ? 0 : Ticks()) {
  if (work_ != nullptr) work_of_thread = work_;
}

Helping::~Helping() {
  if (work_ == nullptr) return;
  work_->others_.fetch_add(TicksSince(start_), std::memory_order_relaxed);
  work_of_thread = outer_;
}

}  // namespace tilewire::threading
