// SPDX-License-Identifier: Apache-2.0
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "client/load/record.h"

namespace tilewire::client {
namespace {

using nlohmann::json;

constexpr int kVersion = 1;

json Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }
absl::Duration DurationAt(const json& object, const char* name) {
  return absl::Nanoseconds(object.at(name).get<int64_t>());
}

// The percentiles are for readers that do not know the buckets; they are not read again.
json LatenciesJson(const Latencies& latencies) {
  json object = {{"count", latencies.count()},
                 {"sum_ns", Nanoseconds(latencies.sum())},
                 {"min_ns", Nanoseconds(latencies.Percentile(0))},
                 {"max_ns", Nanoseconds(latencies.Percentile(100))}};
  for (const auto& [name, percent] :
       {std::pair{"p50_ns", 50.0}, {"p90_ns", 90.0}, {"p99_ns", 99.0}, {"p999_ns", 99.9}})
    object[name] = Nanoseconds(latencies.Percentile(percent));
  json buckets = json::array();
  for (const auto& [bucket, count] : latencies.Buckets()) buckets.push_back({bucket, count});
  object["buckets"] = std::move(buckets);
  return object;
}

Latencies LatenciesAt(const json& object, const char* name) {
  const json& found = object.at(name);
  std::vector<std::pair<size_t, int64_t>> buckets;
  for (const json& pair : found.at("buckets"))
    buckets.emplace_back(pair.at(0).get<size_t>(), pair.at(1).get<int64_t>());
  return Latencies::FromBuckets(buckets, DurationAt(found, "sum_ns"), DurationAt(found, "min_ns"),
                                DurationAt(found, "max_ns"));
}

json WindowsJson(const std::vector<LoadWindow>& windows) {
  json array = json::array();
  for (const LoadWindow& window : windows) {
    array.push_back({{"start_s", window.start_s},
                     {"length_s", window.length_s},
                     {"answered", window.answered},
                     {"errors", window.errors},
                     {"waiting", window.waiting},
                     {"p50_ns", Nanoseconds(window.p50)},
                     {"p99_ns", Nanoseconds(window.p99)}});
  }
  return array;
}

std::vector<LoadWindow> WindowsAt(const json& object) {
  std::vector<LoadWindow> windows;
  for (const json& window : object.at("windows")) {
    windows.push_back({.start_s = window.at("start_s"),
                       .length_s = window.at("length_s"),
                       .answered = window.at("answered"),
                       .errors = window.at("errors"),
                       .waiting = window.at("waiting"),
                       .p50 = DurationAt(window, "p50_ns"),
                       .p99 = DurationAt(window, "p99_ns")});
  }
  return windows;
}

json PartsJson(const std::vector<PartReport>& parts) {
  json array = json::array();
  for (const PartReport& part : parts) {
    array.push_back({{"name", part.name},
                     {"answered", part.answered},
                     {"mismatches", part.mismatches},
                     {"errors", part.errors},
                     {"latencies", LatenciesJson(part.latencies)}});
  }
  return array;
}

std::vector<PartReport> PartsAt(const json& object) {
  std::vector<PartReport> parts;
  for (const json& part : object.at("parts")) {
    parts.push_back({.name = part.at("name"),
                     .answered = part.at("answered"),
                     .mismatches = part.at("mismatches"),
                     .errors = part.at("errors"),
                     .latencies = LatenciesAt(part, "latencies")});
  }
  return parts;
}

json ErrorsJson(const std::map<absl::StatusCode, int64_t>& errors) {
  json object = json::object();
  for (const auto& [code, count] : errors) object[absl::StatusCodeToString(code)] = count;
  return object;
}

std::map<absl::StatusCode, int64_t> ErrorsAt(const json& object) {
  std::map<absl::StatusCode, int64_t> errors;
  for (int code = 1; code <= 16; ++code) {
    const auto found =
        object.at("errors").find(absl::StatusCodeToString(static_cast<absl::StatusCode>(code)));
    if (found != object.at("errors").end())
      errors[static_cast<absl::StatusCode>(code)] = found->get<int64_t>();
  }
  return errors;
}

json ServerJson(const ServerTimes& server) {
  json object = json::object();
  for (const ServerTime& time : kServerTimes)
    object[time.name] = LatenciesJson(server.*time.latencies);
  return object;
}

json ReportJson(const LoadReport& report) {
  return {{"name", report.name},
          {"offered_per_s", report.offered},
          {"connections", report.connections},
          {"think_ns", Nanoseconds(report.think)},
          {"rows_per_request", report.rows},
          {"started_unix_ns", absl::ToUnixNanos(report.started)},
          {"changes", report.changes},
          {"ended_early", report.ended_early},
          {"elapsed_ns", Nanoseconds(report.elapsed)},
          {"cpu_ns", Nanoseconds(report.cpu)},
          {"threads", report.threads},
          {"answered", report.answered},
          {"per_s", report.rate()},
          {"mismatches", report.mismatches},
          {"refusals", report.refusals},
          {"unsent", report.unsent},
          {"waiting", report.waiting},
          {"errors", ErrorsJson(report.errors)},
          {"first_error", report.first_error},
          {"latency", LatenciesJson(report.latencies)},
          {"service", LatenciesJson(report.service)},
          {"lateness", LatenciesJson(report.lateness)},
          {"server", ServerJson(report.server)},
          {"windows", WindowsJson(report.windows)},
          {"parts", PartsJson(report.parts)}};
}

LoadReport ReportFrom(const json& object) {
  LoadReport report;
  report.name = object.at("name");
  report.offered = object.at("offered_per_s");
  report.connections = object.at("connections");
  // Not in the first files.
  report.think = absl::Nanoseconds(object.value("think_ns", int64_t{0}));
  report.rows = object.at("rows_per_request");
  report.started = absl::FromUnixNanos(object.at("started_unix_ns"));
  report.changes = object.at("changes");
  report.ended_early = object.at("ended_early");
  report.elapsed = DurationAt(object, "elapsed_ns");
  report.cpu = DurationAt(object, "cpu_ns");
  report.threads = object.at("threads");
  report.answered = object.at("answered");
  report.mismatches = object.at("mismatches");
  report.refusals = object.at("refusals");
  report.unsent = object.at("unsent");
  report.waiting = object.at("waiting");
  report.errors = ErrorsAt(object);
  report.first_error = object.at("first_error");
  report.latencies = LatenciesAt(object, "latency");
  report.service = LatenciesAt(object, "service");
  report.lateness = LatenciesAt(object, "lateness");
  for (const ServerTime& time : kServerTimes)
    report.server.*time.latencies = LatenciesAt(object.at("server"), time.name);
  report.windows = WindowsAt(object);
  report.parts = PartsAt(object);
  return report;
}

}  // namespace

std::string ToJson(const LoadRecord& record) {
  json runs = json::array();
  for (const LoadReport& report : record.runs) runs.push_back(ReportJson(report));
  const json object = {{"tilewire_load", kVersion},   {"title", record.title},
                       {"loads", record.loads},       {"bound", record.bound},
                       {"holds_per_s", record.holds}, {"fails_per_s", record.fails},
                       {"runs", std::move(runs)}};
  // Names of models may be any bytes; JSON is UTF-8.
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<LoadRecord> FromJson(absl::string_view text) {
  try {
    const json object = json::parse(text.begin(), text.end());
    if (object.at("tilewire_load") != kVersion) {
      return absl::InvalidArgumentError(
          absl::StrCat("a report of a version other than ", kVersion));
    }
    LoadRecord record;
    record.title = object.at("title");
    record.loads = object.value("loads", record.loads);
    record.bound = object.at("bound");
    record.holds = object.at("holds_per_s");
    record.fails = object.at("fails_per_s");
    for (const json& run : object.at("runs")) record.runs.push_back(ReportFrom(run));
    return record;
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a report: ", error.what()));
  }
}

}  // namespace tilewire::client
