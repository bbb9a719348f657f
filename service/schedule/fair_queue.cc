// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/fair_queue.h"

#include <algorithm>
#include <utility>

namespace tilewire::service {
namespace {

// Models that no longer send requests are forgotten beyond this number.
constexpr size_t kMostModels = 1024;
// How far behind long work of its own model short work is looked for.
constexpr int kLooksAhead = 64;

}  // namespace

FairQueue::Place FairQueue::PlaceOf(const Work& work) {
  const absl::Duration since_epoch = work.expires_ - absl::UnixEpoch();
  absl::Duration rest;
  const int64_t step = absl::IDivDuration(since_epoch, kDeadlineStep, &rest);
  return {-work.terms().priority, step, work.sequence_};
}

absl::Duration FairQueue::LeastReceived() const {
  absl::Duration least = absl::InfiniteDuration();
  for (const auto& [name, queue] : models_) {
    if (!queue.works.empty()) least = std::min(least, queue.received);
  }
  return least == absl::InfiniteDuration() ? absl::ZeroDuration() : least;
}

void FairQueue::ForgetIdleModels() {
  if (models_.size() < kMostModels) return;
  for (auto it = models_.begin(); it != models_.end();) {
    it = it->second.works.empty() ? models_.erase(it) : std::next(it);
  }
}

void FairQueue::Push(Work* work, absl::Duration expected, absl::Time expires) {
  ForgetIdleModels();
  const absl::Duration least = LeastReceived();
  ModelQueue& queue = models_[work->terms().model];
  if (queue.works.empty()) queue.received = std::max(queue.received, least);
  work->waiting_ = true;
  work->sequence_ = next_sequence_++;
  work->expected_ = expected;
  work->expires_ = expires;
  queue.backlog += expected;
  InsertNodes(&queue, work);
}

void FairQueue::InsertNodes(ModelQueue* queue, Work* work) {
  if (spare_places_.empty()) {
    queue->works.emplace(PlaceOf(*work), work);
    by_expiry_.emplace(work->expires_, work);
    return;
  }
  Works::node_type place = std::move(spare_places_.back());
  ByExpiry::node_type expiry = std::move(spare_expiries_.back());
  spare_places_.pop_back();
  spare_expiries_.pop_back();
  place.key() = PlaceOf(*work);
  place.mapped() = work;
  expiry.value() = {work->expires_, work};
  queue->works.insert(std::move(place));
  by_expiry_.insert(std::move(expiry));
}

void FairQueue::RemoveNodes(ModelQueue* queue, Work* work) {
  Works::node_type place = queue->works.extract(PlaceOf(*work));
  ByExpiry::node_type expiry = by_expiry_.extract({work->expires_, work});
  if (spare_places_.size() == kSpareNodes) return;
  spare_places_.push_back(std::move(place));
  spare_expiries_.push_back(std::move(expiry));
}

void FairQueue::Drop(ModelQueue* queue, Work* work) {
  RemoveNodes(queue, work);
  queue->backlog -= work->expected_;
  work->waiting_ = false;
}

bool FairQueue::Remove(Work* work) {
  if (!work->waiting_) return false;
  Drop(&models_[work->terms().model], work);
  return true;
}

Work* FairQueue::Take(ModelQueue* queue, Work* work) {
  Drop(queue, work);
  queue->received += work->expected_;
  return work;
}

Work* FairQueue::Pop() {
  ModelQueue* next = nullptr;
  for (auto& [name, queue] : models_) {
    if (queue.works.empty()) continue;
    if (next == nullptr || queue.received < next->received) next = &queue;
  }
  return next == nullptr ? nullptr : Take(next, next->works.begin()->second);
}

Work* FairQueue::PopShort(absl::Duration longest) {
  ModelQueue* next = nullptr;
  Work* best = nullptr;
  for (auto& [name, queue] : models_) {
    if (next != nullptr && queue.received >= next->received) continue;
    Work* work = FirstShort(queue, longest);
    if (work == nullptr) continue;
    best = work;
    next = &queue;
  }
  return best == nullptr ? nullptr : Take(next, best);
}

Work* FairQueue::FirstShort(const ModelQueue& queue, absl::Duration longest) {
  int looked = 0;
  for (const auto& [place, work] : queue.works) {
    if (++looked > kLooksAhead) break;
    const bool known = work->expected_ > absl::ZeroDuration();
    if (work->terms().may_run_serially && known && work->expected_ <= longest) return work;
  }
  return nullptr;
}

void FairQueue::Charge(const std::string& model, absl::Duration taken, absl::Duration expected) {
  const auto found = models_.find(model);
  if (found != models_.end()) found->second.received += taken - expected;
}

std::vector<Work*> FairQueue::TakeExpired(absl::Time now) {
  std::vector<Work*> expired;
  while (!by_expiry_.empty() && by_expiry_.begin()->first <= now) {
    Work* work = by_expiry_.begin()->second;
    Drop(&models_[work->terms().model], work);
    expired.push_back(work);
  }
  return expired;
}

absl::Time FairQueue::NextExpiry() const {
  return by_expiry_.empty() ? absl::InfiniteFuture() : by_expiry_.begin()->first;
}

int64_t FairQueue::SizeOf(const std::string& model) const {
  const auto found = models_.find(model);
  return found == models_.end() ? 0 : static_cast<int64_t>(found->second.works.size());
}

absl::Duration FairQueue::WorkAhead(const std::string& model) const {
  const auto found = models_.find(model);
  const absl::Duration own = found == models_.end() ? absl::ZeroDuration() : found->second.backlog;
  absl::Duration ahead = own;
  for (const auto& [name, queue] : models_) {
    if (name != model) ahead += std::min(queue.backlog, own);
  }
  return ahead;
}

}  // namespace tilewire::service
