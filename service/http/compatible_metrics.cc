// SPDX-License-Identifier: Apache-2.0
#include "service/http/compatible_metrics.h"

#include <cstdint>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/http/process_use.h"

namespace tilewire::service {
namespace {

double Microseconds(int64_t ns) { return ns * 1e-3; }

SizeCounts InMicroseconds(const Histogram& histogram) {
  SizeCounts counts = InSeconds(histogram.Sum());
  for (auto& [bound, up_to] : counts.up_to) bound *= 1e6;
  counts.sum *= 1e6;
  return counts;
}

}  // namespace

void AddAsTriton(const ServedModel& served, const VersionStatistics::Sums& sums,
                 MetricsText* text) {
  const std::string version = absl::StrCat(served.version);
  const absl::string_view labels[] = {served.name, version};
  const int64_t refused = sums.ends.Refused();
  const int64_t cancelled = sums.ends.Of(absl::StatusCode::kCancelled);
  const int64_t broken = sums.ends.Of(absl::StatusCode::kInternal);
  const std::pair<const char*, int64_t> failures[] = {
      {"REJECTED", refused},
      {"CANCELED", cancelled},
      {"BACKEND", broken},
      {"OTHER", sums.fail.count - refused - cancelled - broken}};
  for (const auto& [reason, count] : failures)
    text->Add(Metric::kNvFailure, {served.name, version, reason}, static_cast<double>(count));
  text->Add(Metric::kNvSuccess, labels, static_cast<double>(sums.success.count));
  text->Add(Metric::kNvCount, labels, static_cast<double>(sums.rows));
  text->Add(Metric::kNvExecCount, labels, static_cast<double>(sums.runs));
  text->Add(Metric::kNvRequestUs, labels, Microseconds(sums.success.ns));
  text->Add(Metric::kNvQueueUs, labels, Microseconds(sums.queue.ns));
  text->Add(Metric::kNvInputUs, labels, Microseconds(sums.input.ns));
  text->Add(Metric::kNvInferUs, labels, Microseconds(sums.plan.ns + sums.infer.ns));
  text->Add(Metric::kNvOutputUs, labels, Microseconds(sums.output.ns));
  text->Add(Metric::kNvLoadSeconds, labels, absl::ToDoubleSeconds(served.statistics->load_time()));
}

void AddAsTriton(const std::string& model, int64_t version, const DispatcherLoad::OfModel& load,
                 MetricsText* text) {
  text->Add(Metric::kNvPending, {model, absl::StrCat(version)}, static_cast<double>(load.waiting));
}

void AddMachineAsTriton(double utilization, MetricsText* text) {
  text->Add(Metric::kNvUtilization, utilization);
  const MachineMemory memory = MemoryOfMachine("");
  text->Add(Metric::kNvMemoryTotal, static_cast<double>(memory.total_bytes));
  text->Add(Metric::kNvMemoryUsed, static_cast<double>(memory.used_bytes));
}

void AddAsOvms(const ServedModel& served, const VersionStatistics::Sums& sums, MetricsText* text) {
  const std::string version = absl::StrCat(served.version);
  const absl::string_view ends[] = {"KServe", "gRPC", "ModelInfer", served.name, version};
  const absl::string_view labels[] = {served.name, version};
  text->Add(Metric::kOvmsSuccess, ends, static_cast<double>(sums.success.count));
  text->Add(Metric::kOvmsFail, ends, static_cast<double>(sums.fail.count));
  const VersionStatistics::Durations& durations = served.statistics->durations();
  text->Add(Metric::kOvmsRequestUs, {"gRPC", served.name, version},
            InMicroseconds(durations.request));
  text->Add(Metric::kOvmsInferenceUs, labels, InMicroseconds(durations.compute));
  text->Add(Metric::kOvmsWaitUs, labels, InMicroseconds(durations.queue));
}

void AddAsOvms(const std::string& model, const DispatcherLoad::OfModel& load, MetricsText* text) {
  text->Add(Metric::kOvmsCurrent, {model}, static_cast<double>(load.waiting + load.running));
}

}  // namespace tilewire::service
