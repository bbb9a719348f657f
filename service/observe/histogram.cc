// SPDX-License-Identifier: Apache-2.0
#include "service/observe/histogram.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <memory>
#include <new>

namespace tilewire::service {
namespace {

// The powers of ten from 1 us, in nanoseconds.
constexpr int64_t kShortest = 1000;
constexpr std::array<int64_t, Histogram::kDecades + 1> kPowers = [] {
  std::array<int64_t, Histogram::kDecades + 1> powers = {kShortest};
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = 10 * powers[i - 1];
  return powers;
}();

// The power of ten at or below the least number of so many bits; the next one may be below others
// with as many.
constexpr std::array<uint8_t, 64> kDecadeOfBits = [] {
  std::array<uint8_t, 64> decades = {};
  for (size_t bits = 1; bits < decades.size(); ++bits) {
    const int64_t least = int64_t{1} << (bits - 1);
    while (decades[bits] + 1u < Histogram::kDecades && kPowers[decades[bits] + 1] <= least)
      ++decades[bits];
  }
  return decades;
}();

// The buckets of tenths of a power of ten: [10, 20) in steps of 1, [20, 50) of 2, [50, 100) of 5.
size_t BucketOfTenths(size_t tenths) {
  if (tenths < 20) return tenths - 10;
  return tenths < 50 ? 10 + (tenths - 20) / 2 : 25 + (tenths - 50) / 5;
}

// Where the bucket with this place within its power of ten ends.
int64_t EndInTenths(size_t place) {
  const auto within = static_cast<int64_t>(place);
  if (within < 10) return 11 + within;
  return within < 25 ? 22 + 2 * (within - 10) : 55 + 5 * (within - 25);
}

}  // namespace

size_t Histogram::BucketOf(int64_t ns) {
  const int64_t below = ns - 1;  // ends belong to the bucket that they end
  if (below < kShortest) return 0;
  if (below >= kPowers[kDecades]) return kBuckets - 1;
  size_t decade = kDecadeOfBits[std::bit_width(static_cast<uint64_t>(below))];
  if (below >= kPowers[decade + 1]) ++decade;
  return 1 + decade * kBucketsOfADecade + BucketOfTenths(below / (kPowers[decade] / 10));
}

int64_t Histogram::EndOf(size_t bucket) {
  if (bucket == 0) return kShortest;
  if (bucket >= kBuckets - 1) return std::numeric_limits<int64_t>::max();
  const size_t decade = (bucket - 1) / kBucketsOfADecade;
  const int64_t tenths = EndInTenths((bucket - 1) % kBucketsOfADecade);
  return tenths * (kPowers[decade] / 10);
}

int64_t Histogram::Sums::CountUpTo(absl::Duration end) const {
  int64_t sum = 0;
  const size_t last = BucketOf(absl::ToInt64Nanoseconds(end));
  for (size_t bucket = 0; bucket <= last; ++bucket) sum += buckets[bucket];
  return sum;
}

Histogram::Histogram() { shards_[0].store(&first_, std::memory_order_relaxed); }

Histogram::~Histogram() {
  for (size_t i = 1; i < kThreadShards; ++i) {
    const std::unique_ptr<Shard> owned(shards_[i].load(std::memory_order_relaxed));
  }
}

Histogram::Shard& Histogram::ShardFor(size_t shard) {
  Shard* found = shards_[shard].load(std::memory_order_acquire);
  if (found != nullptr) return *found;
  std::unique_ptr<Shard> made(new (std::nothrow) Shard());
  if (made == nullptr) return first_;
  if (shards_[shard].compare_exchange_strong(found, made.get(), std::memory_order_acq_rel))
    return *made.release();
  return *found;
}

void Histogram::Record(absl::Duration duration) {
  const int64_t ns = std::max<int64_t>(0, absl::ToInt64Nanoseconds(duration));
  Shard& shard = ShardFor(ShardOfThread());
  shard.buckets[BucketOf(ns)].fetch_add(1, std::memory_order_relaxed);
  shard.ns.fetch_add(ns, std::memory_order_relaxed);
}

Histogram::Sums Histogram::Sum() const {
  Sums sums;
  for (const auto& owned : shards_) {
    const Shard* shard = owned.load(std::memory_order_acquire);
    if (shard == nullptr) continue;
    for (size_t bucket = 0; bucket < kBuckets; ++bucket)
      sums.buckets[bucket] += shard->buckets[bucket].load(std::memory_order_relaxed);
    sums.ns += shard->ns.load(std::memory_order_relaxed);
  }
  for (int64_t in_bucket : sums.buckets) sums.count += in_bucket;
  return sums;
}

}  // namespace tilewire::service
