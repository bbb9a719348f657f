// SPDX-License-Identifier: Apache-2.0
#include "service/http/server_metrics.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "engine/cpu/isa.h"
#include "service/http/compatible_metrics.h"
#include "service/models/statistics.h"
#include "service/observe/background_log.h"
#include "service/observe/metrics.h"
#include "service/observe/refusal.h"
#include "service/trace/trace_sink.h"

namespace tilewire::service {
namespace {

// Told from the start, so that a rate sees the first of them; others are told once there are any.
constexpr absl::StatusCode kCodesFromTheStart[] = {
    absl::StatusCode::kOk,          absl::StatusCode::kCancelled,
    absl::StatusCode::kUnavailable, absl::StatusCode::kDeadlineExceeded,
    absl::StatusCode::kInternal,    absl::StatusCode::kResourceExhausted,
    absl::StatusCode::kNotFound,    absl::StatusCode::kInvalidArgument};

constexpr absl::string_view kProtocol = "grpc";  // the only one that serves inference

// Sizes of batches that get a bound.
constexpr int64_t kRowBounds[] = {1, 2, 4, 8, 16, 32, 64, 128, 256};

constexpr absl::string_view kStates[] = {"LOADING", "READY", "UNAVAILABLE", "UNLOADING",
                                         "UNLOADED"};

struct Version {
  absl::string_view model, version;
};

// As ModelStateName(), but an unloaded version is UNLOADED: alerts take UNAVAILABLE for a failure.
absl::string_view StateOf(const ServedModel& served) {
  return served.state == ModelState::kUnloaded ? "UNLOADED" : ModelStateName(served.state);
}

double Seconds(int64_t ns) { return ns * 1e-9; }

// Sizes beyond those that the statistics keep apart count as larger than any bound.
SizeCounts RowsOfRuns(const VersionStatistics::Sums& sums) {
  SizeCounts counts{.up_to = {}, .count = sums.runs, .sum = static_cast<double>(sums.rows)};
  for (const int64_t bound : kRowBounds) {
    int64_t up_to = 0;
    for (const VersionStatistics::Batch& batch : sums.batches)
      up_to += batch.rows <= bound ? batch.runs : 0;
    counts.up_to.emplace_back(static_cast<double>(bound), up_to);
  }
  return counts;
}

void AddEnds(const Version& of, const FailureCounts::Sums& sums, MetricsText* text) {
  for (size_t code = 0; code < kStatusCodes; ++code) {
    const auto status = static_cast<absl::StatusCode>(code);
    const bool told =
        std::count(std::begin(kCodesFromTheStart), std::end(kCodesFromTheStart), status) > 0;
    if (!told && sums.by_code[code] == 0) continue;
    text->Add(Metric::kRequests,
              {of.model, of.version, kProtocol, absl::StatusCodeToString(status)},
              static_cast<double>(sums.by_code[code]));
  }
  for (size_t refusal = 0; refusal < kRefusals; ++refusal) {
    text->Add(Metric::kRefused, {of.model, of.version, kRefusalNames[refusal]},
              static_cast<double>(sums.by_refusal[refusal]));
  }
}

void AddRuns(const Version& of, const VersionStatistics& statistics,
             const VersionStatistics::Sums& sums, MetricsText* text) {
  const auto labels = {of.model, of.version};
  text->Add(Metric::kRows, labels, static_cast<double>(sums.rows));
  text->Add(Metric::kRuns, labels, static_cast<double>(sums.runs));
  text->Add(Metric::kBatchRows, labels, RowsOfRuns(sums));
  text->Add(Metric::kRequestSeconds, labels, InSeconds(statistics.durations().request.Sum()));
  text->Add(Metric::kQueueSeconds, labels, InSeconds(statistics.durations().queue.Sum()));
  text->Add(Metric::kComputeSeconds, labels, InSeconds(statistics.durations().compute.Sum()));
  const std::pair<const char*, int64_t> stages[] = {
      {"decode", sums.decode.ns}, {"queue", sums.queue.ns}, {"plan", sums.plan.ns},
      {"input", sums.input.ns},   {"infer", sums.infer.ns}, {"encode", sums.output.ns},
      {"write", sums.write.ns}};
  for (const auto& [stage, ns] : stages)
    text->Add(Metric::kStageSeconds, {of.model, of.version, stage}, Seconds(ns));
  text->Add(Metric::kCoreSeconds, labels, Seconds(sums.core_ns));
}

void AddVersion(const ServedModel& served, const MetricsDialects& dialects, MetricsText* text) {
  const std::string number = absl::StrCat(served.version);
  const Version of = {served.name, number};
  const VersionStatistics::Sums sums = served.statistics->Sum();
  AddEnds(of, sums.ends, text);
  AddRuns(of, *served.statistics, sums, text);
  if (dialects.triton) AddAsTriton(served, sums, text);
  if (dialects.ovms) AddAsOvms(served, sums, text);
  const absl::string_view now = StateOf(served);
  for (const absl::string_view state : kStates)
    text->Add(Metric::kModelState, {of.model, of.version, state}, state == now ? 1 : 0);
  text->Add(Metric::kModelBytes, {of.model, of.version},
            static_cast<double>(served.statistics->held_bytes()));
  text->Add(Metric::kModelLoadSeconds, {of.model, of.version},
            absl::ToDoubleSeconds(served.statistics->load_time()));
}

void AddModels(const WatchedServer& server, const ServerLoad& load, MetricsText* text) {
  const Statistics& statistics = server.models->statistics();
  std::map<std::string, int64_t> models;  // with the version that requests get without naming one
  for (const ModelRepository::Served& served : server.models->All()) {
    AddVersion(*served, server.dialects, text);
    const auto [at, is_new] = models.emplace(served->name, served->version);
    if (!is_new && served->state == ModelState::kReady) at->second = served->version;
    if (is_new) AddEnds({served->name, ""}, served->absent->Sum(), text);
  }
  AddEnds({"", ""}, statistics.unnamed().Sum(), text);
  for (const auto& [name, version] : models) {
    const auto found = load.work.models.find(name);
    const DispatcherLoad::OfModel now =
        found == load.work.models.end() ? DispatcherLoad::OfModel() : found->second;
    text->Add(Metric::kWaiting, {name}, static_cast<double>(now.waiting));
    text->Add(Metric::kRunning, {name}, static_cast<double>(now.running));
    text->Add(Metric::kPredictedWait, {name}, absl::ToDoubleSeconds(now.predicted_wait));
    if (server.dialects.triton) AddAsTriton(name, version, now, text);
    if (server.dialects.ovms) AddAsOvms(name, now, text);
  }
  std::map<std::string, Statistics::Loads> loads = statistics.loads();
  for (const auto& [name, version] : models) loads[name];
  for (const auto& [name, of_model] : loads) {
    text->Add(Metric::kModelLoads, {name, "ok"}, static_cast<double>(of_model.ok));
    text->Add(Metric::kModelLoads, {name, "failed"}, static_cast<double>(of_model.failed));
  }
}

void AddTraces(const WatchedServer& server, MetricsText* text) {
  for (const auto& [loss, name] : kTraceLosses) {
    const int64_t dropped = server.tracer != nullptr ? server.tracer->Dropped(loss) : 0;
    text->Add(Metric::kTracesDropped, {name}, static_cast<double>(dropped));
  }
}

void AddServer(const WatchedServer& server, const ServerLoad& load, MetricsText* text) {
  text->Add(Metric::kReady, server.ready() ? 1 : 0);
  text->Add(Metric::kCores, server.engine->threads);
  text->Add(Metric::kCoresBusy, static_cast<double>(load.work.busy));
  text->Add(Metric::kCpuWait, Seconds(server.slow->cpu_wait().waited_ns));
  text->Add(Metric::kPlans, static_cast<double>(load.plans.kept));
  text->Add(Metric::kPlansBuilt, static_cast<double>(load.plans.built));
  text->Add(Metric::kPlanSeconds, absl::ToDoubleSeconds(load.plans.building));
  text->Add(Metric::kCacheHits, static_cast<double>(load.primitives.hits));
  text->Add(Metric::kCacheMisses, static_cast<double>(load.primitives.misses));
  text->Add(Metric::kCacheEvictions, static_cast<double>(load.primitives.evictions));
  text->Add(Metric::kCacheBytes, static_cast<double>(load.primitives.bytes));
  text->Add(Metric::kWorkBytes, static_cast<double>(server.admission->HeldByRequests()));
  text->Add(Metric::kWorkBytesLimit, static_cast<double>(server.admission->max_bytes()));
  text->Add(Metric::kIdleBytes, {"answers"}, static_cast<double>(load.idle_answer_bytes));
  text->Add(Metric::kConnections, {kProtocol}, server.listener->OpenConnections());
  const auto refused = [&server](ConnectionRefusal why) {
    return static_cast<double>(server.listener->Refused(why));
  };
  text->Add(Metric::kConnectionsRefused, {"descriptors"}, refused(ConnectionRefusal::kDescriptors));
  text->Add(Metric::kConnectionsRefused, {"peer"}, refused(ConnectionRefusal::kPeer));
  text->Add(Metric::kLogLinesDropped, static_cast<double>(LostLogLines()));
  AddTraces(server, text);
  text->Add(Metric::kBuildInfo, {server.version, cpu::IsaName(server.engine->max_isa)}, 1);
}

void AddProcess(MetricsText* text) {
  const ProcessUse use = UseOfProcess("");
  text->Add(Metric::kThrottled, use.throttled_seconds);
  text->Add(Metric::kProcessCpu, use.cpu_seconds);
  text->Add(Metric::kProcessResident, static_cast<double>(use.resident_bytes));
  text->Add(Metric::kProcessVirtual, static_cast<double>(use.virtual_bytes));
  text->Add(Metric::kProcessFds, static_cast<double>(use.open_fds));
  text->Add(Metric::kProcessMaxFds, static_cast<double>(use.max_fds));
  text->Add(Metric::kProcessStart, use.start_seconds);
}

}  // namespace

std::string MetricsOf(const WatchedServer& server, MachineCpu* machine) {
  const ServerLoad load = server.load();
  MetricsText text;
  AddModels(server, load, &text);
  AddServer(server, load, &text);
  AddProcess(&text);
  if (server.dialects.triton) AddMachineAsTriton(machine->ShareSinceLast(), &text);
  return text.Text();
}

}  // namespace tilewire::service
