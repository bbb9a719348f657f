// SPDX-License-Identifier: Apache-2.0
#include "service/rpc/answers/server_status_answer.h"

#include <map>
#include <memory>

#include "absl/strings/str_cat.h"
#include "engine/base/status_macros.h"
#include "engine/base/utf8.h"
#include "service/models/statistics.h"
#include "service/observe/histogram.h"
#include "service/observe/steady_time.h"

namespace tilewire::service {
namespace {

void EncodeDurations(const Histogram::Sums& sums, v1::VersionStatus* message) {
  for (size_t bucket = 0; bucket < Histogram::kBuckets; ++bucket) {
    if (sums.buckets[bucket] == 0) continue;
    v1::DurationCount* encoded = message->add_durations();
    encoded->set_up_to_ns(Histogram::EndOf(bucket));
    encoded->set_count(sums.buckets[bucket]);
  }
}

void EncodeCounts(const VersionStatistics& statistics, v1::VersionStatus* message) {
  const VersionStatistics::Sums sums = statistics.Sum();
  message->set_answered(sums.success.count);
  message->set_failed(sums.fail.count);
  message->set_refused(sums.ends.Refused());
  message->set_rows(sums.rows);
  message->set_request_ns(sums.success.ns);
  message->set_queue_ns(sums.queue.ns);
  message->set_core_ns(sums.core_ns);
  message->set_held_bytes(statistics.held_bytes());
  EncodeDurations(statistics.durations().request.Sum(), message);
}

void Encode(const ServedModel& served, v1::VersionStatus* message) {
  message->set_version(absl::StrCat(served.version));
  message->set_state(std::string(ModelStateName(served.state)));
  message->set_reason(Utf8Text(ReasonOf(served)));
  if (served.statistics != nullptr) EncodeCounts(*served.statistics, message);
}

void EncodeModels(const ModelRepository& models, const DispatcherLoad& work,
                  const v1::ServerStatusRequest& request, v1::ServerStatusResponse* response) {
  std::map<std::string, v1::ModelStatus*> encoded;
  for (const std::shared_ptr<const ServedModel>& served : models.All()) {
    if (!request.model().empty() && served->name != request.model()) continue;
    v1::ModelStatus*& message = encoded[served->name];
    if (message == nullptr) {
      message = response->add_models();
      message->set_name(served->name);
    }
    Encode(*served, message->add_versions());
  }
  for (const auto& [name, message] : encoded) {
    const auto found = work.models.find(name);
    if (found == work.models.end()) continue;
    message->set_waiting(found->second.waiting);
    message->set_running(found->second.running);
    message->set_predicted_wait_ns(absl::ToInt64Nanoseconds(found->second.predicted_wait));
  }
}

// The requests that named no model that there is, or a version that is not served.
int64_t FailedUnnamed(const ModelRepository& models) {
  int64_t failed = models.statistics().unnamed().Sum().All();
  std::string counted;
  for (const std::shared_ptr<const ServedModel>& served : models.All()) {
    if (served->absent == nullptr || served->name == counted) continue;
    counted = served->name;
    failed += served->absent->Sum().All();
  }
  return failed;
}

}  // namespace

absl::Status AnswerServerStatus(const ModelRepository& models, const ServerNumbers& server,
                                const v1::ServerStatusRequest& request,
                                v1::ServerStatusResponse* response) {
  if (!request.model().empty()) ABSL_RETURN_IF_ERROR(models.Find(request.model(), "").status());
  response->set_server_version(server.version);
  response->set_state(server.state);
  response->set_at_ns(absl::ToUnixNanos(SteadyNow()));
  response->set_uptime_ns(absl::ToInt64Nanoseconds(server.uptime));
  response->set_cores(server.cores);
  response->set_cores_busy(server.work.busy);
  response->set_throttled_ns(server.throttled_ns);
  if (server.cpu_wait_share) response->set_cpu_wait_share(*server.cpu_wait_share);
  response->set_work_bytes(server.work_bytes);
  response->set_work_limit_bytes(server.work_limit_bytes);
  response->set_connections(server.connections);
  EncodeModels(models, server.work, request, response);
  response->set_unnamed_failed(FailedUnnamed(models));
  return absl::OkStatus();
}

}  // namespace tilewire::service
