// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "absl/strings/str_cat.h"
#include "client/load/record.h"

namespace tilewire::client {
namespace {

using nlohmann::json;

constexpr int kFileVersion = 1;

json Nanoseconds(absl::Duration duration) { return absl::ToInt64Nanoseconds(duration); }

// A fault of a file, by the place in it.
class BadRecord : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A value of a file that is read, and where it stands: "runs[0].latency".
class Place {
 public:
  Place(const json& value, std::string name) : value_(value), name_(std::move(name)) {}

  Place At(const char* key) const {
    if (!value_.is_object())
      throw BadRecord(absl::StrCat(Name(), " is ", Kind(), ", not an object with '", key, "'"));
    const auto found = value_.find(key);
    if (found == value_.end()) throw BadRecord(absl::StrCat("'", Below(key), "' is missing"));
    return {*found, Below(key)};
  }
  bool Has(const char* key) const { return value_.is_object() && value_.contains(key); }

  std::vector<Place> Elements() const {
    if (!value_.is_array()) throw BadRecord(absl::StrCat(Name(), " is ", Kind(), ", not an array"));
    std::vector<Place> elements;
    for (const json& element : value_)
      elements.emplace_back(element, absl::StrCat(name_, "[", elements.size(), "]"));
    return elements;
  }

  template <typename T>
  T Get() const {
    constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;
    if (kIsNumber && !value_.is_number())
      throw BadRecord(absl::StrCat(Name(), " is ", Kind(), ", not a number"));
    if (std::is_same_v<T, bool> && !value_.is_boolean())
      throw BadRecord(absl::StrCat(Name(), " is ", Kind(), ", not true or false"));
    if (std::is_same_v<T, std::string> && !value_.is_string())
      throw BadRecord(absl::StrCat(Name(), " is ", Kind(), ", not a string"));
    return value_.get<T>();
  }
  // The value of a member; `otherwise` if a file of an older version does not have it.
  template <typename T>
  T Get(const char* key, T otherwise) const {
    return Has(key) ? At(key).Get<T>() : otherwise;
  }
  template <typename T>
  void Get(const char* key, T* value) const {
    *value = At(key).Get<T>();
  }
  absl::Duration Duration() const { return absl::Nanoseconds(Get<int64_t>()); }
  absl::Duration Duration(const char* key) const { return At(key).Duration(); }
  const json& value() const { return value_; }

 private:
  std::string Name() const { return name_.empty() ? "the whole" : absl::StrCat("'", name_, "'"); }
  std::string Below(const char* key) const {
    return name_.empty() ? key : absl::StrCat(name_, ".", key);
  }
  std::string Kind() const {
    const char* const kind = value_.type_name();
    return absl::StrCat(value_.is_object() || value_.is_array() ? "an "
                        : value_.is_null()                      ? ""
                                                                : "a ",
                        kind);
  }

  const json& value_;
  const std::string name_;
};

// The percentiles are for readers that do not know the buckets; they are not read again. Those for
// which there are too few answers are null.
json LatenciesJson(const Latencies& latencies) {
  json object = {{"count", latencies.count()},
                 {"sum_ns", Nanoseconds(latencies.sum())},
                 {"min_ns", Nanoseconds(latencies.Percentile(0))},
                 {"max_ns", Nanoseconds(latencies.Percentile(100))}};
  for (const auto& [name, percent] :
       {std::pair{"p50_ns", 50.0}, {"p90_ns", 90.0}, {"p99_ns", 99.0}, {"p999_ns", 99.9}}) {
    const bool is_known = latencies.Knows(percent);
    object[name] = is_known ? Nanoseconds(latencies.Percentile(percent)) : json();
  }
  json buckets = json::array();
  for (const auto& [bucket, count] : latencies.Buckets()) buckets.push_back({bucket, count});
  object["buckets"] = std::move(buckets);
  return object;
}

Latencies LatenciesAt(const Place& object, const char* name) {
  const Place found = object.At(name);
  std::vector<std::pair<size_t, int64_t>> buckets;
  for (const Place& pair : found.At("buckets").Elements()) {
    const std::vector<Place> both = pair.Elements();
    if (both.size() != 2) throw BadRecord("a bucket is not a pair of bucket and count");
    buckets.emplace_back(both[0].Get<size_t>(), both[1].Get<int64_t>());
  }
  return Latencies::FromBuckets(buckets, found.Duration("sum_ns"), found.Duration("min_ns"),
                                found.Duration("max_ns"));
}

json WindowJson(const LoadWindow& window) {
  const bool has_p99 = window.answered >= Latencies::FewestFor(99);
  json object = {{"start_s", window.start_s},
                 {"length_s", window.length_s},
                 {"answered", window.answered},
                 {"errors", window.errors},
                 {"waiting", window.waiting},
                 {"p50_ns", Nanoseconds(window.p50)},
                 {"p99_ns", has_p99 ? Nanoseconds(window.p99) : json()},
                 {"max_ns", Nanoseconds(window.largest)}};
  if (window.latencies.empty()) return object;
  json each = json::array();
  for (const absl::Duration latency : window.latencies) each.push_back(Nanoseconds(latency));
  object["latencies_ns"] = std::move(each);
  return object;
}

LoadWindow WindowFrom(const Place& object) {
  LoadWindow window;
  object.Get("start_s", &window.start_s);
  object.Get("length_s", &window.length_s);
  object.Get("answered", &window.answered);
  object.Get("errors", &window.errors);
  object.Get("waiting", &window.waiting);
  window.p50 = object.Duration("p50_ns");
  // Older files have no maximum of each second, and no single latencies.
  window.largest = object.Duration(object.Has("max_ns") ? "max_ns" : "p99_ns");
  window.p99 = object.At("p99_ns").value().is_null() ? window.largest : object.Duration("p99_ns");
  if (object.Has("latencies_ns")) {
    for (const Place& latency : object.At("latencies_ns").Elements())
      window.latencies.push_back(latency.Duration());
  }
  return window;
}

json PartJson(const PartReport& part) {
  return {{"name", part.name},
          {"answered", part.answered},
          {"mismatches", part.mismatches},
          {"errors", part.errors},
          {"latencies", LatenciesJson(part.latencies)}};
}

PartReport PartFrom(const Place& object) {
  PartReport part;
  object.Get("name", &part.name);
  object.Get("answered", &part.answered);
  object.Get("mismatches", &part.mismatches);
  object.Get("errors", &part.errors);
  part.latencies = LatenciesAt(object, "latencies");
  return part;
}

template <typename Value, typename ToJsonOf>
json ArrayOf(const std::vector<Value>& values, ToJsonOf to_json) {
  json array = json::array();
  for (const Value& value : values) array.push_back(to_json(value));
  return array;
}

json ErrorsJson(const std::map<absl::StatusCode, int64_t>& errors) {
  json object = json::object();
  for (const auto& [code, count] : errors) object[absl::StatusCodeToString(code)] = count;
  return object;
}

std::map<absl::StatusCode, int64_t> ErrorsAt(const Place& object) {
  std::map<absl::StatusCode, int64_t> errors;
  for (int number = 1; number <= 16; ++number) {
    const auto code = static_cast<absl::StatusCode>(number);
    const std::string name = absl::StatusCodeToString(code);
    if (object.Has(name.c_str())) object.Get(name.c_str(), &errors[code]);
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
          {"ended_early", report.ended_early()},
          {"ended_because", report.ended_because},
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
          {"windows", ArrayOf(report.windows, WindowJson)},
          {"parts", ArrayOf(report.parts, PartJson)}};
}

void ReadCounts(const Place& object, LoadReport* report) {
  object.Get("answered", &report->answered);
  object.Get("mismatches", &report->mismatches);
  object.Get("refusals", &report->refusals);
  object.Get("unsent", &report->unsent);
  object.Get("waiting", &report->waiting);
  report->errors = ErrorsAt(object.At("errors"));
  object.Get("first_error", &report->first_error);
}

LoadReport ReportFrom(const Place& object) {
  LoadReport report;
  object.Get("name", &report.name);
  object.Get("offered_per_s", &report.offered);
  object.Get("connections", &report.connections);
  report.think = absl::Nanoseconds(object.Get("think_ns", int64_t{0}));
  object.Get("rows_per_request", &report.rows);
  report.started = absl::FromUnixNanos(object.At("started_unix_ns").Get<int64_t>());
  object.Get("changes", &report.changes);
  if (object.At("ended_early").Get<bool>())
    report.ended_because = object.Get("ended_because", std::string("the file does not say why"));
  report.elapsed = object.Duration("elapsed_ns");
  report.cpu = object.Duration("cpu_ns");
  object.Get("threads", &report.threads);
  ReadCounts(object, &report);
  report.latencies = LatenciesAt(object, "latency");
  report.service = LatenciesAt(object, "service");
  report.lateness = LatenciesAt(object, "lateness");
  for (const ServerTime& time : kServerTimes)
    report.server.*time.latencies = LatenciesAt(object.At("server"), time.name);
  for (const Place& window : object.At("windows").Elements())
    report.windows.push_back(WindowFrom(window));
  for (const Place& part : object.At("parts").Elements()) report.parts.push_back(PartFrom(part));
  return report;
}

json OriginJson(const LoadOrigin& origin) {
  return {{"load", origin.load},     {"server", origin.server},
          {"client", origin.client}, {"host", origin.host},
          {"seed", origin.seed},     {"began_unix_ns", absl::ToUnixNanos(origin.began)}};
}

LoadOrigin OriginFrom(const Place& object) {
  LoadOrigin origin;
  object.Get("load", &origin.load);
  object.Get("server", &origin.server);
  object.Get("client", &origin.client);
  object.Get("host", &origin.host);
  object.Get("seed", &origin.seed);
  origin.began = absl::FromUnixNanos(object.At("began_unix_ns").Get<int64_t>());
  return origin;
}

// Older files have the names of loads alone.
std::vector<LoadOrigin> OriginsFrom(const Place& object) {
  std::vector<LoadOrigin> origins;
  if (object.Has("origins")) {
    for (const Place& origin : object.At("origins").Elements())
      origins.push_back(OriginFrom(origin));
  } else if (object.Has("loads")) {
    for (const Place& load : object.At("loads").Elements())
      origins.push_back({.load = load.Get<std::string>()});
  }
  return origins;
}

LoadRecord RecordFrom(const Place& object) {
  if (!object.Has("tilewire_load"))
    throw BadRecord("'tilewire_load' is missing, which `tilewire load --json=FILE` writes");
  if (const auto version = object.At("tilewire_load").Get<double>(); version != kFileVersion) {
    throw BadRecord(absl::StrCat("'tilewire_load' is ", version, ", and this tool reads version ",
                                 kFileVersion));
  }
  LoadRecord record;
  object.Get("title", &record.title);
  record.origins = OriginsFrom(object);
  object.Get("bound", &record.bound);
  object.Get("holds_per_s", &record.holds);
  object.Get("fails_per_s", &record.fails);
  record.low = object.Get("low_per_s", record.holds);
  for (const Place& run : object.At("runs").Elements()) record.runs.push_back(ReportFrom(run));
  return record;
}

}  // namespace

std::string ToJson(const LoadRecord& record) {
  const json object = {{"tilewire_load", kFileVersion},
                       {"title", record.title},
                       {"origins", ArrayOf(record.origins, OriginJson)},
                       {"bound", record.bound},
                       {"holds_per_s", record.holds},
                       {"low_per_s", record.low},
                       {"fails_per_s", record.fails},
                       {"runs", ArrayOf(record.runs, ReportJson)}};
  // Names of models may be any bytes; JSON is UTF-8.
  return object.dump(1, ' ', false, json::error_handler_t::replace) + "\n";
}

absl::StatusOr<LoadRecord> FromJson(absl::string_view text) {
  try {
    const json object = json::parse(text.begin(), text.end());
    return RecordFrom({object, ""});
  } catch (const json::parse_error& error) {
    return absl::InvalidArgumentError(
        absl::StrCat("not a report: it is not JSON", text.empty() ? ": the file is empty" : "",
                     text.empty() ? "" : absl::StrCat(", or cut short, at byte ", error.byte)));
  } catch (const BadRecord& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a report: ", error.what()));
  } catch (const json::exception& error) {
    return absl::InvalidArgumentError(absl::StrCat("not a report: ", error.what()));
  }
}

}  // namespace tilewire::client
