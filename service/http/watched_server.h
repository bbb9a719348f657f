// SPDX-License-Identifier: Apache-2.0
//
// The parts of a server that the monitoring pages look at. /metrics waits for no lock that requests
// take; /healthz takes the dispatcher's for a moment, /statusz those of the models' plans.
#ifndef SERVICE_HTTP_WATCHED_SERVER_H_
#define SERVICE_HTTP_WATCHED_SERVER_H_

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "engine/primitive_engine.h"
#include "service/front/listener.h"
#include "service/models/model_repository.h"
#include "service/observe/recent_load.h"
#include "service/observe/slow_requests.h"
#include "service/observe/status.h"
#include "service/schedule/admission.h"
#include "service/schedule/dispatcher_load.h"
#include "service/trace/tracer.h"

namespace tilewire::service {

// Numbers behind locks, as the timer saw them at its last look.
struct ServerLoad {
  DispatcherLoad work;
  CacheStatistics primitives;
  PlanCounts plans;
  int64_t idle_answer_bytes = 0;
};

// The names of other servers that metrics have too.
struct MetricsDialects {
  bool triton = false, ovms = false;
};

// All that is pointed to outlives the pages. The functions are thread-safe.
struct WatchedServer {
  const ModelRepository* models = nullptr;
  const Admission* admission = nullptr;
  const Listener* listener = nullptr;
  const EngineOptions* engine = nullptr;
  std::string version;
  MetricsDialects dialects;
  // As grpc.health.v1 tells them; draining is never ready.
  std::function<bool()> live, ready, draining;
  std::function<ServerLoad()> load;
  const SlowRequests* slow = nullptr;
  const RecentLoad* recent = nullptr;
  const Tracer* tracer = nullptr;  // null: nothing is traced
  absl::Time start;
  // For the status page.
  std::string build, host;
  std::vector<Status::Flag> flags;
};

}  // namespace tilewire::service

#endif  // SERVICE_HTTP_WATCHED_SERVER_H_
