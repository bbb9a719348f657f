// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/write_deadlines.h"

#include <utility>
#include <vector>

#include "absl/time/clock.h"

namespace tilewire::service {

std::shared_ptr<WriteDeadlines::Write> WriteDeadlines::Add(grpc::CallbackServerContext* context) {
  auto write = std::make_shared<Write>(context);
  threading::MutexLock lock(&mutex_);
  // All have the same time: those whose calls have ended gather at the front.
  while (!writes_.empty() && writes_.begin()->second.expired()) writes_.erase(writes_.begin());
  writes_.emplace(absl::Now() + timeout_, write);
  return write;
}

absl::Time WriteDeadlines::CancelLate() {
  std::vector<std::shared_ptr<Write>> late;
  absl::Time next = absl::InfiniteFuture();
  {
    threading::MutexLock lock(&mutex_);
    while (!writes_.empty()) {
      const auto first = writes_.begin();
      std::shared_ptr<Write> write = first->second.lock();
      next = first->first;
      if (write != nullptr && next > absl::Now()) break;
      next = absl::InfiniteFuture();
      if (write != nullptr) late.push_back(std::move(write));
      writes_.erase(first);
    }
  }
  for (const std::shared_ptr<Write>& write : late) {
    const std::lock_guard<std::recursive_mutex> lock(write->mutex_);
    if (write->context_ != nullptr) write->context_->TryCancel();
  }
  return next;
}

}  // namespace tilewire::service
