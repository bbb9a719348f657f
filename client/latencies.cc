// SPDX-License-Identifier: Apache-2.0
#include "client/latencies.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace tilewire::client {
namespace {

constexpr int64_t kMostNanoseconds = int64_t{1} << 50;  // 13 days

// Nanoseconds below 2 * kSteps have a bucket each; above, a bucket is as wide as the doubling that
// it lies in is long, divided by kSteps.
size_t BucketOf(int64_t nanoseconds) {
  const int shift = std::max<int>(
      0, std::bit_width(static_cast<uint64_t>(nanoseconds)) - 1 - Latencies::kStepBits);
  return static_cast<size_t>(shift * Latencies::kSteps + (nanoseconds >> shift));
}

// The largest duration of a bucket.
int64_t EndOf(size_t bucket) {
  const auto index = static_cast<int64_t>(bucket);
  const int64_t shift = std::max<int64_t>(0, index / Latencies::kSteps - 1);
  return ((index - shift * Latencies::kSteps + 1) << shift) - 1;
}

// The rank of a percentile among so many durations, from 1 on.
int64_t RankOf(double percent, int64_t count) {
  return std::clamp<int64_t>(static_cast<int64_t>(std::ceil(percent / 100 * count)), 1, count);
}

}  // namespace

void Latencies::Add(absl::Duration latency) {
  const int64_t nanoseconds =
      std::clamp<int64_t>(absl::ToInt64Nanoseconds(latency), 0, kMostNanoseconds);
  const size_t bucket = BucketOf(nanoseconds);
  if (bucket >= buckets_.size()) buckets_.resize(bucket + 1);
  ++buckets_[bucket];
  ++count_;
  sum_ += latency;
  smallest_ = std::min(smallest_, latency);
  largest_ = std::max(largest_, latency);
}

void Latencies::Merge(const Latencies& other) {
  buckets_.resize(std::max(buckets_.size(), other.buckets_.size()));
  for (size_t i = 0; i < other.buckets_.size(); ++i) buckets_[i] += other.buckets_[i];
  count_ += other.count_;
  sum_ += other.sum_;
  smallest_ = std::min(smallest_, other.smallest_);
  largest_ = std::max(largest_, other.largest_);
}

absl::Duration Latencies::Mean() const {
  return count_ == 0 ? absl::ZeroDuration() : sum_ / count_;
}

absl::Duration Latencies::Percentile(double percent) const {
  if (count_ == 0) return absl::ZeroDuration();
  const int64_t rank = RankOf(percent, count_);
  if (rank == 1) return smallest_;
  int64_t seen = 0;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    seen += buckets_[bucket];
    if (seen >= rank) return std::clamp(absl::Nanoseconds(EndOf(bucket)), smallest_, largest_);
  }
  return largest_;
}

int64_t Latencies::FewestFor(double percent) {
  if (percent <= 0 || percent >= 100) return 1;
  // 100 - 99.9 is not exactly a tenth.
  return static_cast<int64_t>(std::ceil(100 / (100 - percent) - 1e-6));
}

int64_t Latencies::CountBeyond(double percent) const {
  return count_ == 0 ? 0 : count_ - RankOf(percent, count_);
}

int64_t Latencies::CountAbove(absl::Duration bound) const {
  if (count_ == 0 || bound >= largest_) return 0;
  const int64_t nanoseconds = absl::ToInt64Nanoseconds(std::max(bound, absl::ZeroDuration()));
  int64_t above = 0;
  for (size_t i = BucketOf(nanoseconds) + 1; i < buckets_.size(); ++i) above += buckets_[i];
  return above;
}

std::string Latencies::ToString() const {
  std::string text;
  for (const double percent : {50.0, 90.0, 99.0, 99.9}) {
    if (Knows(percent))
      absl::StrAppend(&text, "p", percent, " ", LatencyText(Percentile(percent)), ", ");
  }
  return absl::StrCat(text, "max ", LatencyText(Percentile(100)));
}

std::vector<std::pair<size_t, int64_t>> Latencies::Buckets() const {
  std::vector<std::pair<size_t, int64_t>> filled;
  for (size_t bucket = 0; bucket < buckets_.size(); ++bucket) {
    if (buckets_[bucket] > 0) filled.emplace_back(bucket, buckets_[bucket]);
  }
  return filled;
}

Latencies Latencies::FromBuckets(const std::vector<std::pair<size_t, int64_t>>& buckets,
                                 absl::Duration sum, absl::Duration smallest,
                                 absl::Duration largest) {
  Latencies latencies;
  for (auto [bucket, count] : buckets) {
    bucket = std::min(bucket, BucketOf(kMostNanoseconds));
    if (bucket >= latencies.buckets_.size()) latencies.buckets_.resize(bucket + 1);
    latencies.buckets_[bucket] += count;
    latencies.count_ += count;
  }
  latencies.sum_ = sum;
  if (latencies.count_ > 0) latencies.smallest_ = smallest;
  latencies.largest_ = largest;
  return latencies;
}

absl::Duration Latencies::EndOfBucket(size_t bucket) { return absl::Nanoseconds(EndOf(bucket)); }

std::string LatencyText(absl::Duration duration) {
  static constexpr struct {
    double nanoseconds;
    const char* unit;
  } kUnits[] = {{1e9, "s"}, {1e6, "ms"}, {1e3, "us"}};
  const double nanoseconds = absl::ToDoubleNanoseconds(duration);
  for (const auto& [size, unit] : kUnits) {
    // A value that would be rounded to 1000 of a unit belongs to the next one.
    if (nanoseconds < 0.9995 * size) continue;
    const double value = nanoseconds / size;
    return absl::StrFormat("%.*f %s", value < 9.995 ? 2 : value < 99.95 ? 1 : 0, value, unit);
  }
  return absl::StrFormat("%.0f ns", nanoseconds);
}

std::string PercentileText(const Latencies& latencies, double percent) {
  return latencies.Knows(percent) ? LatencyText(latencies.Percentile(percent)) : "-";
}

}  // namespace tilewire::client
