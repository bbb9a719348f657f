// SPDX-License-Identifier: Apache-2.0
//
// The status as JSON, and what /proc tells of the process's threads.
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "nlohmann/json.hpp"
#include "service/observe/status.h"

namespace tilewire::service {
namespace {

using nlohmann::json;

json JsonOf(const std::optional<double>& share) { return share ? json(*share) : json(); }

json JsonOf(const RecentLoad::Point& point) {
  return {{"second", point.second},
          {"requests", point.requests},
          {"failed", point.failed},
          {"p50_ms", point.p50_ms},
          {"p99_ms", point.p99_ms}};
}

json JsonOf(const Status::Model& model) {
  const RecentLoad::OfModel& recent = model.recent;
  return {{"name", model.name},
          {"version", model.version},
          {"state", model.state},
          {"remark", model.remark},
          {"requests", model.requests},
          {"failed", model.failed},
          {"bytes", model.bytes},
          {"last_minute",
           {{"requests", recent.requests},
            {"failed", recent.failed},
            {"per_second", recent.per_second},
            {"p50_ms", recent.p50_ms},
            {"p99_ms", recent.p99_ms},
            {"waiting_share", recent.waiting_share},
            {"rows_per_run", recent.rows_per_run},
            {"running", recent.running},
            {"cores", recent.cores}}}};
}

json JsonOf(const Status::Slow& slow) {
  return {{"id", slow.id},
          {"model", slow.model},
          {"version", slow.version},
          {"code", slow.code},
          {"words", slow.words},
          {"at_ms", absl::ToUnixMillis(slow.at)},
          {"total_ms", slow.total_ms}};
}

json JsonOf(const Status::Layers& layers) {
  json steps = json::array();
  for (const Status::Layers::Step& step : layers.costliest)
    steps.push_back({{"node", step.node}, {"share", step.share}});
  return {{"model", layers.model},
          {"version", layers.version},
          {"runs", layers.runs},
          {"steps", layers.steps},
          {"costliest", steps}};
}

json JsonOf(const Status::Line& line) {
  return {{"at_ms", absl::ToUnixMillis(line.at)}, {"level", line.level}, {"text", line.text}};
}

json JsonOf(const Status::Flag& flag) {
  return {{"name", flag.name}, {"value", flag.value}, {"changed", flag.changed}};
}

json JsonOf(const Status::Thread& thread) {
  return {{"name", thread.name},
          {"state", std::string(1, thread.state)},
          {"cpu_seconds", thread.cpu_seconds}};
}

template <typename Values>
json ArrayOf(const Values& values) {
  json array = json::array();
  for (const auto& value : values) array.push_back(JsonOf(value));
  return array;
}

// A line of /proc/self/task/N/stat: "N (name) S ..." with the times in the 14th and 15th field.
bool ReadThread(const std::string& path, Status::Thread* thread) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return false;
  const size_t begin = line.find('('), end = line.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return false;
  thread->name = line.substr(begin + 1, end - begin - 1);
  std::istringstream rest(line.substr(end + 1));
  std::string skipped;
  rest >> thread->state;
  for (int field = 4; field < 14; ++field) rest >> skipped;
  int64_t user = 0, system = 0;
  if (!(rest >> user >> system)) return false;
  thread->cpu_seconds =
      static_cast<double>(user + system) / static_cast<double>(sysconf(_SC_CLK_TCK));
  return true;
}

}  // namespace

std::string StatusJson(const Status& status) {
  const json all = {{"server", status.server},
                    {"build", status.build},
                    {"host", status.host},
                    {"now_ms", absl::ToUnixMillis(status.now)},
                    {"uptime_s", absl::ToInt64Seconds(status.uptime)},
                    {"state", status.state},
                    {"isa", status.isa},
                    {"precision", status.precision},
                    {"threads", status.threads},
                    {"waiting", status.waiting},
                    {"running", status.running},
                    {"throttled_share", status.throttled_share},
                    {"cpu_wait_share", JsonOf(status.cpu_wait_share)},
                    {"cpu_pressure", JsonOf(status.cpu_pressure)},
                    {"connections", status.connections},
                    {"memory",
                     {{"work_bytes", status.work_bytes},
                      {"work_limit_bytes", status.work_limit_bytes},
                      {"code_bytes", status.code_bytes}}},
                    {"lost_lines", status.lost_lines},
                    {"missed_records", status.missed_records},
                    {"seconds", ArrayOf(status.points)},
                    {"models", ArrayOf(status.models)},
                    {"slowest", ArrayOf(status.slowest)},
                    {"layers", ArrayOf(status.layers)},
                    {"lines", ArrayOf(status.lines)},
                    {"flags", ArrayOf(status.flags)},
                    {"threads_of_process", ArrayOf(status.threads_of_process)}};
  return all.dump(-1, ' ', false, json::error_handler_t::replace);
}

std::vector<Status::Thread> ReadThreads() {
  std::vector<Status::Thread> threads;
  std::error_code error;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task", error)) {
    Status::Thread thread;
    if (ReadThread(task.path() / "stat", &thread)) threads.push_back(std::move(thread));
  }
  std::sort(threads.begin(), threads.end(),
            [](const auto& a, const auto& b) { return a.name < b.name; });
  return threads;
}

}  // namespace tilewire::service
