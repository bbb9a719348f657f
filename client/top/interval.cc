// SPDX-License-Identifier: Apache-2.0
#include "client/top/interval.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

namespace tilewire::client {
namespace {

// Two answers of one server tell its start to within what its clock is read apart.
constexpr int64_t kSameStartNs = 100'000'000;
// Longer ones have a bucket without an end.
constexpr int64_t kLongestNs = 100'000'000'000;

using Buckets = std::map<int64_t, int64_t>;  // counts by the ends of their buckets

int64_t StartOf(const v1::ServerStatusResponse& status) {
  return status.at_ns() - status.uptime_ns();
}

Buckets Difference(const v1::VersionStatus& before, const v1::VersionStatus& after) {
  Buckets buckets;
  for (const v1::DurationCount& duration : after.durations())
    buckets[duration.up_to_ns()] += duration.count();
  for (const v1::DurationCount& duration : before.durations())
    buckets[duration.up_to_ns()] -= duration.count();
  return buckets;
}

std::optional<double> QuantileMs(const Buckets& buckets, double share) {
  int64_t all = 0;
  for (const auto& [up_to_ns, count] : buckets) all += std::max<int64_t>(0, count);
  const auto rank = static_cast<int64_t>(std::ceil(share * static_cast<double>(all)));
  int64_t passed = 0;
  for (const auto& [up_to_ns, count] : buckets) {
    passed += std::max<int64_t>(0, count);
    if (count > 0 && passed >= rank)
      return static_cast<double>(std::min(up_to_ns, kLongestNs)) * 1e-6;
  }
  return std::nullopt;
}

VersionInterval Between(const v1::VersionStatus& before, const v1::VersionStatus& after,
                        double seconds) {
  const auto rate = [&](auto count) {
    const auto more = static_cast<double>((after.*count)() - (before.*count)());
    return seconds > 0 ? std::max(0.0, more) / seconds : 0;
  };
  using Status = v1::VersionStatus;
  const Buckets buckets = Difference(before, after);
  VersionInterval interval = {.version = after.version(),
                              .state = after.state(),
                              .reason = after.reason(),
                              .requests_per_s = rate(&Status::answered),
                              .rows_per_s = rate(&Status::rows),
                              .refused_per_s = rate(&Status::refused),
                              .p50_ms = QuantileMs(buckets, 0.5),
                              .p99_ms = QuantileMs(buckets, 0.99),
                              .cores = rate(&Status::core_ns) * 1e-9,
                              .held_bytes = after.held_bytes()};
  interval.errors_per_s = std::max(0.0, rate(&Status::failed) - interval.refused_per_s);
  const double request_ns = rate(&Status::request_ns);
  if (request_ns > 0) interval.queue_share = std::min(1.0, rate(&Status::queue_ns) / request_ns);
  return interval;
}

bool HasBegunAnew(const v1::VersionStatus& before, const v1::VersionStatus& after) {
  return after.answered() < before.answered() || after.failed() < before.failed();
}

v1::VersionStatus Find(const v1::ServerStatusResponse& status, const std::string& name,
                       const std::string& version) {
  for (const v1::ModelStatus& model : status.models()) {
    if (model.name() != name) continue;
    for (const v1::VersionStatus& one : model.versions())
      if (one.version() == version) return one;
  }
  return {};
}

ModelInterval Between(const v1::ServerStatusResponse& before, const v1::ModelStatus& after,
                      double seconds) {
  ModelInterval model = {
      .name = after.name(), .waiting = after.waiting(), .running = after.running()};
  for (const v1::VersionStatus& version : after.versions()) {
    const v1::VersionStatus old = Find(before, after.name(), version.version());
    const v1::VersionStatus& base =
        HasBegunAnew(old, version) ? v1::VersionStatus::default_instance() : old;
    model.versions.push_back(Between(base, version, seconds));
  }
  return model;
}

// `before` is of the same server, or empty.
TopInterval Since(const v1::ServerStatusResponse& before, const v1::ServerStatusResponse& after) {
  const int64_t begin_ns = before.at_ns() == 0 ? StartOf(after) : before.at_ns();
  TopInterval top = {.server_version = after.server_version(),
                     .state = after.state(),
                     .at = absl::FromUnixNanos(after.at_ns()),
                     .length = absl::Nanoseconds(after.at_ns() - begin_ns),
                     .uptime = absl::Nanoseconds(after.uptime_ns()),
                     .cores = after.cores(),
                     .cores_busy = after.cores_busy(),
                     .work_bytes = after.work_bytes(),
                     .work_limit_bytes = after.work_limit_bytes(),
                     .connections = after.connections()};
  if (after.has_cpu_wait_share()) top.cpu_wait_share = after.cpu_wait_share();
  const double seconds = absl::ToDoubleSeconds(top.length);
  if (seconds > 0 && top.cores > 0) {
    const auto throttled = static_cast<double>(after.throttled_ns() - before.throttled_ns());
    top.throttled_share = std::max(0.0, throttled) * 1e-9 / (seconds * top.cores);
    const auto unnamed = static_cast<double>(after.unnamed_failed() - before.unnamed_failed());
    top.unnamed_errors_per_s = std::max(0.0, unnamed) / seconds;
  }
  for (const v1::ModelStatus& model : after.models()) {
    top.models.push_back(Between(before, model, seconds));
    for (const VersionInterval& version : top.models.back().versions)
      top.held_bytes += version.held_bytes;
  }
  return top;
}

}  // namespace

double TopInterval::RequestsPerSecond() const {
  double sum = 0;
  for (const ModelInterval& model : models)
    for (const VersionInterval& version : model.versions) sum += version.requests_per_s;
  return sum;
}

double TopInterval::Cores() const {
  double sum = 0;
  for (const ModelInterval& model : models)
    for (const VersionInterval& version : model.versions) sum += version.cores;
  return sum;
}

absl::StatusOr<TopInterval> IntervalBetween(const v1::ServerStatusResponse& before,
                                            const v1::ServerStatusResponse& after) {
  if (std::abs(StartOf(after) - StartOf(before)) <= kSameStartNs) return Since(before, after);
  if (StartOf(after) >= before.at_ns()) return IntervalSinceStart(after);
  return absl::FailedPreconditionError(
      "several servers answer at this address, and their numbers are their own");
}

TopInterval IntervalSinceStart(const v1::ServerStatusResponse& status) {
  return Since(v1::ServerStatusResponse::default_instance(), status);
}

}  // namespace tilewire::client
