// SPDX-License-Identifier: Apache-2.0
//
// The load of the last minutes, for people who watch: requests and latencies per second for ten
// minutes, and of each version for the last minute. It is added up from the flight records by the
// thread that looks at them. Thread-safe, but for Look().
#ifndef SERVICE_OBSERVE_RECENT_LOAD_H_
#define SERVICE_OBSERVE_RECENT_LOAD_H_

#include <array>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "engine/threading/mutex.h"
#include "service/observe/flight_record.h"

namespace tilewire::service {

// Durations by size, eight sizes an octave: a quantile is right to 6 %.
class DurationCounts {
 public:
  void Add(int64_t ns) { ++counts_[PlaceOf(ns)]; }
  void Add(const DurationCounts& other);
  // 0 without durations.
  double QuantileMs(double share) const;

 private:
  static constexpr int kPerOctave = 8, kFirstOctave = 9, kOctaves = 28;  // 0.5 us to 137 s
  static size_t PlaceOf(int64_t ns);

  std::array<uint32_t, static_cast<size_t>(kPerOctave)* kOctaves> counts_ = {};
};

class RecentLoad {
 public:
  static constexpr size_t kPoints = 600;
  static constexpr int64_t kBetweenLooksNs = 50'000'000;

  // Requests that ended within a second.
  struct Point {
    int64_t second = 0;  // since 1970
    int64_t requests = 0, failed = 0;
    double p50_ms = 0, p99_ms = 0;
  };
  // The requests of one version in the last minute.
  struct OfModel {
    uint32_t model = 0;
    int64_t requests = 0, failed = 0;
    double per_second = 0;
    double p50_ms = 0, p99_ms = 0;
    double waiting_share = 0;  // of the time of its requests
    double rows_per_run = 0;
    double running = 0;  // how many of its requests ran at a time, on average
    double cores = 0;    // how many they held, on average
  };

  explicit RecentLoad(const FlightRecorder* flights) : flights_(*flights) {}

  // Reads what has been recorded since the last look, if that is long enough ago. By one thread.
  void Look(int64_t now_ns) ABSL_LOCKS_EXCLUDED(mutex_);

  // Seconds without requests are left out; ascending.
  std::vector<Point> Points() const ABSL_LOCKS_EXCLUDED(mutex_);
  std::vector<OfModel> Models(int64_t now_ns) const ABSL_LOCKS_EXCLUDED(mutex_);

 private:
  static constexpr size_t kSlices = 6;  // of a minute
  // The requests of a version that ended within ten seconds.
  struct Slice {
    int64_t number = -1;  // ten seconds each, since 1970
    int64_t requests = 0, failed = 0, runs = 0, rows = 0;
    int64_t total_ns = 0, queue_ns = 0, run_ns = 0, core_ns = 0;
    DurationCounts durations;
  };
  struct Second {
    int64_t number = 0, requests = 0, failed = 0;
    DurationCounts durations;
  };

  void Count(const FlightRecord& record) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void CloseSeconds(int64_t now) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  Second& SecondOf(int64_t number) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const FlightRecorder& flights_;
  int64_t looked_ns_ = 0;
  FlightRecorder::Cursor cursor_;
  mutable threading::Mutex mutex_;
  int64_t since_ns_ ABSL_GUARDED_BY(mutex_) = 0;     // the first look
  std::deque<Second> open_ ABSL_GUARDED_BY(mutex_);  // the latest; records may still come
  std::deque<Point> points_ ABSL_GUARDED_BY(mutex_);
  std::unordered_map<uint32_t, std::array<Slice, kSlices>> by_model_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_RECENT_LOAD_H_
