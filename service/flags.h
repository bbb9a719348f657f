// SPDX-License-Identifier: Apache-2.0
//
// tilewire-server's command line and environment.
#ifndef SERVICE_FLAGS_H_
#define SERVICE_FLAGS_H_

#include <optional>
#include <string>
#include <vector>

#include "engine/engine.h"
#include "service/http/watched_server.h"
#include "service/memory_plan.h"
#include "service/models/loader.h"
#include "service/models/named_models.h"
#include "service/models/repository_scan.h"
#include "service/observe/log_fields.h"
#include "service/observe/status.h"
#include "service/probe.h"
#include "service/server.h"
#include "service/trace/trace_sampler.h"
#include "service/trace/trace_text.h"

namespace tilewire::service {

// Where traces of requests go, and of which.
struct TraceFlags {
  std::string file;  // empty: none
  TraceForm form = TraceForm::kChrome;
  std::string otlp_endpoint;  // of a collector; empty: none
  TraceTerms terms;
};

struct Flags {
  std::vector<std::string> model_repositories;
  ScanOptions scan;
  ControlMode control = ControlMode::kPoll;
  std::vector<std::string> load_models;  // that are loaded at the start in mode kExplicit; "*": all
  double poll_seconds = 1;
  bool unload_first = false;
  bool trial = true;  // whether what is loaded after the start is tried out in another process
  int trial_seconds = 120;
  std::string upload_dir;  // for files that clients send; empty: none are taken
  int64_t max_upload_mb = 256;
  std::vector<NamedModel> models;  // one by one; empty: those of the repository
  std::string log_level = "info";
  LogForm log_form = LogForm::kText;
  int verbose = 0;
  std::string dump_jit;  // folder; empty: no dumps
  bool list_implementations = false;
  std::optional<ProbeTarget> probe;  // the server to ask; nothing: serve
  int drain_delay = 0;               // seconds
  bool pin_threads = true;
  bool warm_up_first = false;
  EngineOptions engine;
  ServerOptions server;
  MemoryWishes memory;
  // The monitoring port; nullopt: none. One that was not asked for may be in use.
  std::string metrics_host = "127.0.0.1";
  std::optional<int> metrics_port;
  bool metrics_port_is_asked_for = false;
  MetricsDialects metrics_dialects;
  TraceFlags traces;
  std::vector<std::string> warnings;  // to be logged: what was ignored
  std::vector<Status::Flag> all;      // as they are, for the status page
};

}  // namespace tilewire::service

#endif  // SERVICE_FLAGS_H_
