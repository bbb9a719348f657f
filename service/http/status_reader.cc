// SPDX-License-Identifier: Apache-2.0
#include "service/http/status_reader.h"

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "engine/base/precision.h"
#include "engine/explanation.h"
#include "service/observe/background_log.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

constexpr size_t kSlowest = 8;
// Models whose layers are shown, and the steps of each: describing plans takes time.
constexpr size_t kWithLayers = 4, kCostliest = 6;

// Adds the times of a plan's steps by node.
void AddTimes(const LivePlan& plan, std::map<std::string, absl::Duration>* by_node) {
  for (const PlanStep& step : plan.steps) (*by_node)[step.node] += step.time;
}

Status::Layers LayersOf(const ServedModel& served) {
  Status::Layers layers = {.model = served.name, .version = served.version};
  std::map<std::string, absl::Duration> by_node;
  for (const LivePlan& plan : served.model->LiveProfile()) {
    if (plan.runs == 0) continue;
    layers.runs += plan.runs;
    layers.steps = std::max<int64_t>(layers.steps, static_cast<int64_t>(plan.steps.size()));
    AddTimes(plan, &by_node);
  }
  absl::Duration all;
  std::vector<std::pair<absl::Duration, std::string>> sorted;
  for (const auto& [node, time] : by_node) {
    all += time;
    sorted.emplace_back(time, node);
  }
  std::sort(sorted.rbegin(), sorted.rend());
  for (size_t i = 0; i < std::min(sorted.size(), kCostliest) && all > absl::ZeroDuration(); ++i) {
    layers.costliest.push_back({sorted[i].second, absl::FDivDuration(sorted[i].first, all)});
  }
  return layers;
}

std::string RemarkOf(const ServedModel& served) {
  std::string remark = ReasonOf(served);
  if (served.stands_in)
    absl::StrAppend(&remark, remark.empty() ? "" : "; ", "serves until another version does");
  return remark;
}

void ReadModels(const WatchedServer& server, Status* status) {
  std::map<uint32_t, RecentLoad::OfModel> recent;
  for (const RecentLoad::OfModel& one : server.recent->Models(absl::ToUnixNanos(status->now)))
    recent[one.model] = one;
  for (const ModelRepository::Served& served : server.models->All()) {
    Status::Model model = {.name = served->name,
                           .version = served->version,
                           .state = std::string(ModelStateName(served->state)),
                           .remark = RemarkOf(*served)};
    if (served->statistics != nullptr) {
      const VersionStatistics::Sums sums = served->statistics->Sum();
      model.requests = sums.success.count + sums.fail.count;
      model.failed = sums.fail.count;
      if (const auto found = recent.find(served->statistics->number()); found != recent.end())
        model.recent = found->second;
    }
    if (served->model != nullptr) model.bytes = served->model->HeldBytes();
    status->models.push_back(std::move(model));
  }
}

void ReadSlowest(const WatchedServer& server, Status* status) {
  const auto name_of = [&server](uint32_t number) {
    return number == 0 ? std::string("other methods") : server.models->NameOf(number).model;
  };
  for (const SlowRequest& slow : server.slow->Find([](uint32_t) { return true; }, 0, kSlowest)) {
    const Statistics::Name name = server.models->NameOf(slow.record.model);
    status->slowest.push_back(
        {.id = std::string(TextOf(slow.id)),
         .model = name.model,
         .code = absl::StatusCodeToString(static_cast<absl::StatusCode>(slow.record.code)),
         .words = StoryText(slow, name_of),
         .version = name.version,
         .at = absl::FromUnixNanos(slow.record.arrival_ns),
         .total_ms = static_cast<double>(slow.record.TotalNs()) * 1e-6});
  }
}

// The models that ran most in the last minute.
void ReadLayers(const WatchedServer& server, Status* status) {
  std::vector<const Status::Model*> busiest;
  for (const Status::Model& model : status->models) {
    if (model.requests > 0) busiest.push_back(&model);
  }
  std::stable_sort(busiest.begin(), busiest.end(), [](const auto* a, const auto* b) {
    return a->recent.running > b->recent.running;
  });
  if (busiest.size() > kWithLayers) busiest.resize(kWithLayers);
  for (const Status::Model* model : busiest) {
    const ModelRepository::Served served = server.models->Peek(model->name, model->version);
    if (served == nullptr || served->model == nullptr) continue;
    Status::Layers layers = LayersOf(*served);
    if (layers.runs > 0) status->layers.push_back(std::move(layers));
  }
}

}  // namespace

Status ReadStatus(const WatchedServer& server) {
  Status status;
  status.server = server.version;
  status.build = server.build;
  status.host = server.host;
  status.now = SteadyNow();
  status.uptime = status.now - server.start;
  status.state = ServerStateName(server.draining(), server.ready());
  status.isa = std::string(cpu::IsaName(server.engine->max_isa));
  status.precision = std::string(PrecisionName(server.engine->precision));
  status.threads = server.engine->threads;
  status.points = server.recent->Points();
  const ServerLoad load = server.load();
  for (const auto& [model, of_model] : load.work.models) {
    status.waiting += of_model.waiting;
    status.running += of_model.running;
  }
  const double granted_ns = absl::ToDoubleNanoseconds(status.uptime) * status.threads;
  if (granted_ns > 0)
    status.throttled_share = static_cast<double>(server.slow->throttled_ns()) / granted_ns;
  const CpuWait::Sums cpu_wait = server.slow->cpu_wait();
  status.cpu_wait_share = cpu_wait.share;
  status.cpu_pressure = cpu_wait.pressure;
  ReadModels(server, &status);
  ReadSlowest(server, &status);
  ReadLayers(server, &status);
  status.work_bytes = server.admission->HeldByRequests();
  status.work_limit_bytes = server.admission->max_bytes();
  status.code_bytes = load.primitives.bytes;
  status.connections = server.listener->OpenConnections();
  status.lost_lines = LostLogLines();
  status.missed_records = static_cast<int64_t>(server.slow->missed());
  for (const LoggedLine& line : RecentWarnings())
    status.lines.push_back({line.at, line.level, line.text});
  status.flags = server.flags;
  status.threads_of_process = ReadThreads();
  return status;
}

}  // namespace tilewire::service
