// SPDX-License-Identifier: Apache-2.0
//
// The content of the status page: the values, the page and the JSON that are made of them. Texts
// may hold anything that a file's name or a client's message may; both forms escape them. Value
// types and pure functions.
#ifndef SERVICE_OBSERVE_STATUS_H_
#define SERVICE_OBSERVE_STATUS_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "service/observe/recent_load.h"

namespace tilewire::service {

inline const char* ServerStateName(bool draining, bool ready) {
  return draining ? "DRAINING" : ready ? "READY" : "NOT READY";
}

struct Status {
  struct Model {
    std::string name;
    int64_t version = 0;
    std::string state, remark;  // "READY"; why it is not, or what is worth knowing
    RecentLoad::OfModel recent;
    int64_t requests = 0, failed = 0;  // since the server found it
    int64_t bytes = 0;                 // that it holds while nothing runs
  };
  struct Slow {
    std::string id, model, code, words;
    int64_t version = 0;
    absl::Time at;
    double total_ms = 0;
  };
  // Where the time of one model's runs went: the steps that took most of it.
  struct Layers {
    struct Step {
      std::string node;
      double share = 0;
    };
    std::string model;
    int64_t version = 0, runs = 0, steps = 0;
    std::vector<Step> costliest;
  };
  struct Line {
    absl::Time at;
    std::string level, text;
  };
  struct Flag {
    std::string name, value;
    bool changed = false;  // from its default
  };
  struct Thread {
    std::string name;
    char state = '?';  // as /proc has it
    double cpu_seconds = 0;
  };

  std::string server, build, host;  // "0.9.0"
  absl::Time now;
  absl::Duration uptime;
  std::string state;  // ServerStateName()
  std::string isa, precision;
  int threads = 0;
  std::vector<RecentLoad::Point> points;  // of the last ten minutes
  int64_t waiting = 0, running = 0;
  double throttled_share = 0;  // of the core time that was granted since the start
  // CpuWait::Sums: of the last minute; nothing where they are not known.
  std::optional<double> cpu_wait_share, cpu_pressure;
  std::vector<Model> models;
  std::vector<Slow> slowest;
  std::vector<Layers> layers;
  int64_t work_bytes = 0, work_limit_bytes = 0, code_bytes = 0;
  int64_t connections = 0;
  int64_t lost_lines = 0, missed_records = 0;
  std::vector<Line> lines;  // the latest warnings and errors of the log, the newest first
  std::vector<Flag> flags;
  std::vector<Thread> threads_of_process;
};

// For programs; the keys stay.
std::string StatusJson(const Status& status);

// For people, complete without a script. Every inline style and script carries `nonce`, which is
// new for each answer: see StatusPolicy().
std::string StatusPage(const Status& status, absl::string_view nonce);

// The Content-Security-Policy that the page is to be sent with.
std::string StatusPolicy(absl::string_view nonce);

// This process's threads, by name; empty where /proc does not tell them.
std::vector<Status::Thread> ReadThreads();

}  // namespace tilewire::service

#endif  // SERVICE_OBSERVE_STATUS_H_
