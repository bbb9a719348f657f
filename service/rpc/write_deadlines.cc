// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/write_deadlines.h"

#include <algorithm>
#include <utility>

#include "absl/hash/hash.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {

std::shared_ptr<WriteDeadlines::Write> WriteDeadlines::Add(grpc::ServerContextBase* context) {
  auto write = std::make_shared<Write>(context);
  Shard& shard = shards_[absl::HashOf(context) % shards_.size()];
  threading::MutexLock lock(&shard.mutex);
  // All have the same time: those whose calls have ended gather at the front.
  while (!shard.writes.empty() && shard.writes.begin()->second.expired()) {
    shard.writes.erase(shard.writes.begin());
  }
  shard.writes.emplace(SteadyNow() + timeout_, write);
  return write;
}

absl::Time WriteDeadlines::TakeLate(Shard* shard, std::vector<std::shared_ptr<Write>>* late) {
  threading::MutexLock lock(&shard->mutex);
  while (!shard->writes.empty()) {
    const auto first = shard->writes.begin();
    std::shared_ptr<Write> write = first->second.lock();
    if (write != nullptr && first->first > SteadyNow()) return first->first;
    if (write != nullptr) late->push_back(std::move(write));
    shard->writes.erase(first);
  }
  return absl::InfiniteFuture();
}

absl::Time WriteDeadlines::CancelLate() {
  std::vector<std::shared_ptr<Write>> late;
  absl::Time next = absl::InfiniteFuture();
  for (Shard& shard : shards_) next = std::min(next, TakeLate(&shard, &late));
  for (const std::shared_ptr<Write>& write : late) {
    const threading::MutexLock lock(&write->mutex_);
    if (write->context_ != nullptr) write->context_->TryCancel();
  }
  return next;
}

}  // namespace tilewire::service
