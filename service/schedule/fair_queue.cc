// SPDX-License-Identifier: Apache-2.0
#include "service/schedule/fair_queue.h"

#include <algorithm>
#include <utility>

namespace tilewire::service {
namespace {

// Models that no longer send requests are forgotten beyond this number.
constexpr size_t kMostModels = 1024;
// How far after other work of its own model short or untimed work is looked for.
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
    it = it->second.works.empty() && it->second.parked == 0 ? models_.erase(it) : std::next(it);
  }
}

void FairQueue::KeepSpareNodes() {
  if (spare_places_.empty()) {
    Works place;
    place.emplace(Place(), nullptr);
    spare_places_.push_back(place.extract(place.begin()));
  }
  if (spare_expiries_.empty()) {
    ByExpiry expiry;
    expiry.emplace(absl::InfiniteFuture(), nullptr);
    spare_expiries_.push_back(expiry.extract(expiry.begin()));
  }
}

void FairQueue::Push(Work* work, absl::Duration expected, absl::Time expires) {
  ForgetIdleModels();
  KeepSpareNodes();
  const absl::Duration least = LeastReceived();
  ModelQueue& queue = models_[work->terms().model];
  // Nothing allocates from here on.
  if (queue.works.empty()) queue.received = std::max(queue.received, least);
  work->waiting_ = true;
  work->sequence_ = next_sequence_++;
  work->expected_ = expected;
  work->expires_ = expires;
  queue.backlog += expected;
  InsertPlace(&queue, work);
  InsertExpiry(work);
}

bool FairQueue::IsShort(const Work& work) {
  const bool known = work.expected_ > absl::ZeroDuration();
  return work.terms().may_run_serially && known && work.expected_ <= kShortWork;
}

bool FairQueue::IsUntimed(const Work& work) {
  const WorkTerms& terms = work.terms();
  return terms.may_run_serially && !terms.time_varies && work.expected_ == absl::ZeroDuration();
}

void FairQueue::InsertPlace(ModelQueue* queue, Work* work) {
  short_in_order_ += IsShort(*work) ? 1 : 0;
  untimed_in_order_ += IsUntimed(*work) ? 1 : 0;
  if (spare_places_.empty()) {
    queue->works.emplace(PlaceOf(*work), work);
    return;
  }
  Works::node_type node = std::move(spare_places_.back());
  spare_places_.pop_back();
  node.key() = PlaceOf(*work);
  node.mapped() = work;
  queue->works.insert(std::move(node));
}

void FairQueue::RemovePlace(ModelQueue* queue, Work* work) {
  short_in_order_ -= IsShort(*work) ? 1 : 0;
  untimed_in_order_ -= IsUntimed(*work) ? 1 : 0;
  Works::node_type node = queue->works.extract(PlaceOf(*work));
  if (spare_places_.size() < kSpareNodes) spare_places_.push_back(std::move(node));
}

void FairQueue::InsertExpiry(Work* work) {
  if (spare_expiries_.empty()) {
    by_expiry_.emplace(work->expires_, work);
    return;
  }
  ByExpiry::node_type node = std::move(spare_expiries_.back());
  spare_expiries_.pop_back();
  node.value() = {work->expires_, work};
  by_expiry_.insert(std::move(node));
}

void FairQueue::RemoveExpiry(Work* work) {
  ByExpiry::node_type node = by_expiry_.extract({work->expires_, work});
  if (spare_expiries_.size() < kSpareNodes) spare_expiries_.push_back(std::move(node));
}

void FairQueue::Park(Work* work) {
  ModelQueue& queue = models_[work->terms().model];
  queue.received -= work->expected_;
  queue.backlog += work->expected_;
  InsertExpiry(work);
  parked_[work->terms().cost_key].insert(work);
  ++queue.parked;
  ++parked_count_;
  work->waiting_ = work->parked_ = work->was_parked_ = true;
}

int64_t FairQueue::Unpark(uint64_t cost_key) {
  const auto found = parked_.find(cost_key);
  if (found == parked_.end()) return 0;
  for (Work* work : found->second) {
    ModelQueue& queue = models_[work->terms().model];
    InsertPlace(&queue, work);
    --queue.parked;
    work->parked_ = false;
  }
  const auto count = static_cast<int64_t>(found->second.size());
  parked_count_ -= count;
  parked_.erase(found);
  return count;
}

void FairQueue::Drop(ModelQueue* queue, Work* work) {
  if (work->parked_) {
    parked_[work->terms().cost_key].erase(work);
    --queue->parked;
    --parked_count_;
    work->parked_ = false;
  } else {
    RemovePlace(queue, work);
  }
  RemoveExpiry(work);
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
  if (short_in_order_ == 0) return nullptr;
  return PopFirst([longest](const Work& work) {
    return IsShort(work) && work.expected_ <= longest && work.Operations().has_value();
  });
}

Work* FairQueue::PopUntimed() { return untimed_in_order_ == 0 ? nullptr : PopFirst(IsUntimed); }

Work* FairQueue::PopFirst(Wanted wanted) {
  ModelQueue* next = nullptr;
  Work* best = nullptr;
  for (auto& [name, queue] : models_) {
    if (next != nullptr && queue.received >= next->received) continue;
    Work* work = First(queue, wanted);
    if (work == nullptr) continue;
    best = work;
    next = &queue;
  }
  return best == nullptr ? nullptr : Take(next, best);
}

Work* FairQueue::First(const ModelQueue& queue, Wanted wanted) {
  int looked = 0;
  for (const auto& [place, work] : queue.works) {
    if (++looked > kLooksAhead) break;
    if (wanted(*work)) return work;
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
  if (found == models_.end()) return 0;
  return static_cast<int64_t>(found->second.works.size()) + found->second.parked;
}

void FairQueue::VisitWaiting(
    absl::FunctionRef<void(const std::string& model, int64_t waiting)> visit) const {
  for (const auto& [model, queue] : models_) {
    const int64_t waiting = static_cast<int64_t>(queue.works.size()) + queue.parked;
    if (waiting > 0) visit(model, waiting);
  }
}

// Works of the lowest priority are last.
absl::Duration FairQueue::BacklogFrom(const ModelQueue& queue, int priority) {
  absl::Duration backlog = queue.backlog;
  for (auto it = queue.works.rbegin(); it != queue.works.rend(); ++it) {
    if (it->second->terms().priority >= priority) break;
    backlog -= it->second->expected_;
  }
  return backlog;
}

absl::Duration FairQueue::WorkAhead(const std::string& model, int priority) const {
  const auto found = models_.find(model);
  const absl::Duration own =
      found == models_.end() ? absl::ZeroDuration() : BacklogFrom(found->second, priority);
  absl::Duration ahead = own;
  for (const auto& [name, queue] : models_) {
    if (name != model) ahead += std::min(queue.backlog, own);
  }
  return ahead;
}

}  // namespace tilewire::service
