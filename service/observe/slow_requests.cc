// SPDX-License-Identifier: Apache-2.0
#include "service/observe/slow_requests.h"

#include <algorithm>
#include <cstring>
#include <map>

#include "absl/functional/function_ref.h"

namespace tilewire::service {
namespace {

constexpr int64_t kMinuteNs = 60'000'000'000;

int64_t MinuteOf(const FlightRecord& record) { return record.EndNs() / kMinuteNs; }

bool IsSlower(const SlowRequest& a, const SlowRequest& b) {
  return a.record.TotalNs() > b.record.TotalNs();
}

// When its run began and ended; the answer may leave later.
struct Span {
  int64_t begin_ns = 0, end_ns = 0;
};
Span RunOf(const FlightRecord& record) {
  const int64_t begin = record.StartNs();
  return {begin, begin + record.RunningNs()};
}

// How long both last at the same time.
int64_t Overlap(const Span& a, const Span& b) {
  return std::min(a.end_ns, b.end_ns) - std::max(a.begin_ns, b.begin_ns);
}

bool IsSame(const FlightRecord& a, const FlightRecord& b) {
  return std::memcmp(&a, &b, sizeof(a)) == 0;
}

}  // namespace

void SlowRequests::Look(int64_t now_ns) {
  if (now_ns - looked_ns_ < kBetweenLooksNs) return;
  looked_ns_ = now_ns;
  throttling_.Look(now_ns);
  cpu_wait_.Look(now_ns);
  flights_.ReadNew(&cursor_, [this](const FlightRecord& record, absl::string_view id) {
    if (!IsBelowBar(record)) Tell(record, id);
    CountRun(record);
  });
  threading::MutexLock lock(&mutex_);
  missed_ = cursor_.missed;
  throttled_ns_ = throttling_.total_ns();
  cpu_wait_sums_ = cpu_wait_.sums();
  ForgetBefore(now_ns / kMinuteNs - static_cast<int64_t>(kMinutes) + 1);
}

void SlowRequests::CountRun(const FlightRecord& record) {
  const bool ran = record.code == 0 && record.run_ns > 0;
  if (!ran || record.plan_key == 0) return;
  Usual& usual = usuals_[record.plan_key % kUsuals];
  if (usual.plan_key != record.plan_key) usual = {.plan_key = record.plan_key};
  usual.ns[usual.runs++ % Usual::kRuns] = record.RunningNs();
}

int64_t SlowRequests::UsualNs(uint64_t plan_key) const {
  const Usual& usual = usuals_[plan_key % kUsuals];
  if (plan_key == 0 || usual.plan_key != plan_key || usual.runs == 0) return 0;
  std::array<int64_t, Usual::kRuns> ns = usual.ns;
  const auto end = ns.begin() + std::min(usual.runs, Usual::kRuns);
  const auto middle = ns.begin() + (end - ns.begin()) / 2;
  std::nth_element(ns.begin(), middle, end);
  return *middle;
}

bool SlowRequests::IsBelowBar(const FlightRecord& record) const {
  const auto bar = bars_.find(record.model);
  return bar != bars_.end() && bar->second.minute == MinuteOf(record) &&
         record.TotalNs() <= bar->second.total_ns;
}

void SlowRequests::Tell(const FlightRecord& record, absl::string_view id) {
  const SlowRequest story = StoryOf(record, id);
  threading::MutexLock lock(&mutex_);
  const Minute& minute = Keep(story);
  Bar& bar = bars_[record.model];
  if (minute.slowest.size() == kPerMinute && minute.number >= bar.minute)
    bar = {minute.number, minute.slowest.back().record.TotalNs()};
}

SlowRequest SlowRequests::StoryOf(const FlightRecord& record, absl::string_view id) const {
  SlowRequest story = {.record = record, .usual_ns = UsualNs(record.plan_key)};
  std::copy(id.begin(), id.end(), story.id.begin());
  story.throttled_ns = throttling_.Between(record.arrival_ns, record.EndNs());
  const Span wait = {record.arrival_ns + record.decode_ns, record.StartNs()};
  const Span run = RunOf(record);
  std::map<uint32_t, SlowRequest::Ahead> ahead;
  flights_.ReadAll([&](const FlightRecord& other, absl::string_view) {
    if (IsSame(other, record)) return;
    const Span its_run = RunOf(other);
    if (Overlap(its_run, run) > 0) ++story.beside;
    const int64_t within_wait = Overlap(its_run, wait);
    if (within_wait <= 0) return;
    SlowRequest::Ahead& of_model = ahead[other.model];
    of_model.model = other.model;
    ++of_model.requests;
    of_model.run_ns += within_wait;
  });
  std::vector<SlowRequest::Ahead> sorted;
  for (const auto& [model, of_model] : ahead) sorted.push_back(of_model);
  std::sort(sorted.begin(), sorted.end(),
            [](const auto& a, const auto& b) { return a.run_ns > b.run_ns; });
  story.ahead_count = static_cast<uint32_t>(std::min(sorted.size(), SlowRequest::kMostAhead));
  std::copy_n(sorted.begin(), story.ahead_count, story.ahead.begin());
  return story;
}

const SlowRequests::Minute& SlowRequests::Keep(const SlowRequest& request) {
  const int64_t number = MinuteOf(request.record);
  Minutes& minutes = by_model_[request.record.model];
  const auto place =
      std::lower_bound(minutes.begin(), minutes.end(), number,
                       [](const Minute& minute, int64_t wanted) { return minute.number < wanted; });
  Minute& minute = place != minutes.end() && place->number == number
                       ? *place
                       : *minutes.insert(place, Minute{.number = number, .slowest = {}});
  minute.slowest.insert(
      std::upper_bound(minute.slowest.begin(), minute.slowest.end(), request, IsSlower), request);
  if (minute.slowest.size() > kPerMinute) minute.slowest.pop_back();
  return minute;
}

void SlowRequests::ForgetBefore(int64_t minute) {
  for (auto it = by_model_.begin(); it != by_model_.end();) {
    Minutes& minutes = it->second;
    while (!minutes.empty() && minutes.front().number < minute) minutes.pop_front();
    it = minutes.empty() ? by_model_.erase(it) : std::next(it);
  }
}

std::vector<SlowRequest> SlowRequests::Find(absl::FunctionRef<bool(uint32_t model)> is_wanted,
                                            int64_t since_ns, size_t most) const {
  std::vector<SlowRequest> found;
  {
    threading::MutexLock lock(&mutex_);
    for (const auto& [model, minutes] : by_model_) {
      if (!is_wanted(model)) continue;
      for (const Minute& minute : minutes) {
        for (const SlowRequest& request : minute.slowest) {
          if (request.record.EndNs() >= since_ns) found.push_back(request);
        }
      }
    }
  }
  std::stable_sort(found.begin(), found.end(), IsSlower);
  if (found.size() > most) found.resize(most);
  return found;
}

int64_t SlowRequests::throttled_ns() const {
  threading::MutexLock lock(&mutex_);
  return throttled_ns_;
}

CpuWait::Sums SlowRequests::cpu_wait() const {
  threading::MutexLock lock(&mutex_);
  return cpu_wait_sums_;
}

uint64_t SlowRequests::missed() const {
  threading::MutexLock lock(&mutex_);
  return missed_;
}

}  // namespace tilewire::service
