// SPDX-License-Identifier: Apache-2.0
#include "service/observe/recent_load.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace tilewire::service {
namespace {

constexpr int64_t kSecondNs = 1'000'000'000;
constexpr int64_t kSliceNs = 10 * kSecondNs;
// Records of a second that are seen later than this are not in its point.
constexpr int64_t kOpenSeconds = 2;

}  // namespace

size_t DurationCounts::PlaceOf(int64_t ns) {
  const auto size = static_cast<uint64_t>(std::max<int64_t>(ns, int64_t{1} << kFirstOctave));
  const int octave = std::bit_width(size) - 1;
  const auto part = static_cast<int>((size >> (octave - 3)) & (kPerOctave - 1));
  const int place = (octave - kFirstOctave) * kPerOctave + part;
  return std::min<size_t>(static_cast<size_t>(place), kPerOctave * kOctaves - 1);
}

void DurationCounts::Add(const DurationCounts& other) {
  for (size_t i = 0; i < counts_.size(); ++i) counts_[i] += other.counts_[i];
}

double DurationCounts::QuantileMs(double share) const {
  double all = 0;
  for (uint32_t count : counts_) all += count;
  if (all == 0) return 0;
  double seen = 0;
  size_t place = 0;
  while (place + 1 < counts_.size() && (seen += counts_[place]) < share * all) ++place;
  const double octave = std::ldexp(1e-6, kFirstOctave + static_cast<int>(place / kPerOctave));
  return octave * (1 + (static_cast<double>(place % kPerOctave) + 0.5) / kPerOctave);
}

void RecentLoad::Look(int64_t now_ns) {
  if (now_ns - looked_ns_ < kBetweenLooksNs) return;
  looked_ns_ = now_ns;
  threading::MutexLock lock(&mutex_);
  if (since_ns_ == 0) since_ns_ = now_ns;
  flights_.ReadNew(&cursor_, [this](const FlightRecord& record, absl::string_view)
                                 ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
                                   if ((record.flags & FlightRecord::kIsInference) != 0)
                                     Count(record);
                                 });
  CloseSeconds(now_ns / kSecondNs);
}

RecentLoad::Second& RecentLoad::SecondOf(int64_t number) {
  const auto place =
      std::lower_bound(open_.begin(), open_.end(), number,
                       [](const Second& second, int64_t wanted) { return second.number < wanted; });
  if (place != open_.end() && place->number == number) return *place;
  Second second;
  second.number = number;
  return *open_.insert(place, second);
}

void RecentLoad::Count(const FlightRecord& record) {
  const bool failed = record.code != 0;
  const int64_t end_ns = record.EndNs();
  Second& second = SecondOf(end_ns / kSecondNs);
  ++second.requests;
  second.failed += failed ? 1 : 0;
  second.durations.Add(record.TotalNs());
  const int64_t number = end_ns / kSliceNs;
  Slice& slice = by_model_[record.model][static_cast<size_t>(number) % kSlices];
  if (slice.number > number) return;  // it came too late
  if (slice.number < number) {
    slice = Slice();
    slice.number = number;
  }
  ++slice.requests;
  slice.failed += failed ? 1 : 0;
  slice.runs += record.batch > 0 ? 1 : 0;
  slice.rows += record.batch;
  slice.total_ns += record.TotalNs();
  slice.queue_ns += record.queue_ns;
  slice.run_ns += record.RunningNs();
  slice.core_ns += record.core_ns;
  slice.durations.Add(record.TotalNs());
}

void RecentLoad::CloseSeconds(int64_t now) {
  while (!open_.empty() && open_.front().number + kOpenSeconds < now) {
    const Second& second = open_.front();
    const bool is_late = !points_.empty() && second.number <= points_.back().second;
    if (!is_late) {
      points_.push_back({second.number, second.requests, second.failed,
                         second.durations.QuantileMs(0.5), second.durations.QuantileMs(0.99)});
    }
    open_.pop_front();
  }
  while (!points_.empty() && points_.front().second + static_cast<int64_t>(kPoints) < now)
    points_.pop_front();
  const int64_t oldest = now * kSecondNs / kSliceNs - static_cast<int64_t>(kSlices);
  std::erase_if(by_model_, [oldest](const auto& model) {
    return std::all_of(model.second.begin(), model.second.end(),
                       [oldest](const Slice& slice) { return slice.number < oldest; });
  });
}

std::vector<RecentLoad::Point> RecentLoad::Points() const {
  threading::MutexLock lock(&mutex_);
  return {points_.begin(), points_.end()};
}

std::vector<RecentLoad::OfModel> RecentLoad::Models(int64_t now_ns) const {
  std::vector<OfModel> all;
  threading::MutexLock lock(&mutex_);
  const int64_t oldest = now_ns / kSliceNs - static_cast<int64_t>(kSlices) + 1;
  const int64_t begin_ns = std::max(oldest * kSliceNs, since_ns_);
  const double seconds =
      std::max(1.0, static_cast<double>(now_ns - begin_ns) / static_cast<double>(kSecondNs));
  for (const auto& [model, slices] : by_model_) {
    Slice sum;
    for (const Slice& slice : slices) {
      if (slice.number < oldest) continue;
      sum.requests += slice.requests;
      sum.failed += slice.failed;
      sum.runs += slice.runs;
      sum.rows += slice.rows;
      sum.total_ns += slice.total_ns;
      sum.queue_ns += slice.queue_ns;
      sum.run_ns += slice.run_ns;
      sum.core_ns += slice.core_ns;
      sum.durations.Add(slice.durations);
    }
    if (sum.requests == 0) continue;
    OfModel& of_model = all.emplace_back();
    of_model.model = model;
    of_model.requests = sum.requests;
    of_model.failed = sum.failed;
    of_model.per_second = static_cast<double>(sum.requests) / seconds;
    of_model.p50_ms = sum.durations.QuantileMs(0.5);
    of_model.p99_ms = sum.durations.QuantileMs(0.99);
    const auto total_ns = static_cast<double>(std::max<int64_t>(1, sum.total_ns));
    of_model.waiting_share = static_cast<double>(sum.queue_ns) / total_ns;
    of_model.rows_per_run =
        static_cast<double>(sum.rows) / static_cast<double>(std::max<int64_t>(1, sum.runs));
    const double passed_ns = seconds * static_cast<double>(kSecondNs);
    of_model.running = static_cast<double>(sum.run_ns) / passed_ns;
    of_model.cores = static_cast<double>(sum.core_ns) / passed_ns;
  }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.model < b.model; });
  return all;
}

}  // namespace tilewire::service
