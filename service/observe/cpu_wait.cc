// SPDX-License-Identifier: Apache-2.0
#include "service/observe/cpu_wait.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tilewire::service {
namespace {

namespace fs = std::filesystem;

// The threads that run requests, by the names that the arena and the dispatcher give them.
constexpr absl::string_view kNames[] = {"tw-compute", "tw-express", "tw-untimed"};

// The least time in a minute in which threads could run that tells anything.
constexpr int64_t kLeastNs = 100'000'000;

bool RunsRequests(const fs::path& task) {
  std::ifstream file(task / "comm");
  std::string name;
  std::getline(file, name);
  return std::find(std::begin(kNames), std::end(kNames), name) != std::end(kNames);
}

// "some avg10=0.00 avg60=12.50 avg300=..."
std::optional<double> ReadPressure(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  if (!std::getline(file, line)) return std::nullopt;
  for (absl::string_view field : absl::StrSplit(line, ' ')) {
    double percent = 0;
    if (absl::StartsWith(field, "avg60=") && absl::SimpleAtod(field.substr(6), &percent))
      return percent / 100;
  }
  return std::nullopt;
}

}  // namespace

// Adds what has come since the last look; threads that have ended are forgotten.
void CpuWait::ReadTasks() {
  std::map<std::string, Task> tasks;
  std::error_code error;
  const bool is_first = looks_.empty();
  fs::directory_iterator entry(absl::StrCat(root_, "/proc/self/task"), error);
  for (; !error && entry != fs::directory_iterator(); entry.increment(error)) {
    const std::string number = entry->path().filename();
    const auto known = tasks_.find(number);
    Task task =
        known != tasks_.end() ? known->second : Task{.runs_requests = RunsRequests(entry->path())};
    Times now = task.last;
    if (task.runs_requests) {
      std::ifstream file(entry->path() / "schedstat");
      if (!(file >> now.ran_ns >> now.waited_ns)) now = task.last;
    }
    if (!is_first) {
      all_.ran_ns += std::max<int64_t>(0, now.ran_ns - task.last.ran_ns);
      all_.waited_ns += std::max<int64_t>(0, now.waited_ns - task.last.waited_ns);
    }
    task.last = now;
    tasks.emplace(number, task);
  }
  tasks_ = std::move(tasks);
}

void CpuWait::Look(int64_t now_ns) {
  if (!looks_.empty() && now_ns - looks_.back().at_ns < kBetweenLooksNs) return;
  ReadTasks();
  looks_.push_back({now_ns, all_});
  while (looks_.front().at_ns < now_ns - kMinuteNs) looks_.pop_front();
  const Times& before = looks_.front().all;
  const int64_t waited = all_.waited_ns - before.waited_ns;
  const int64_t could_run = all_.ran_ns - before.ran_ns + waited;
  sums_.waited_ns = all_.waited_ns;
  sums_.share.reset();
  if (could_run >= kLeastNs)
    sums_.share = static_cast<double>(waited) / static_cast<double>(could_run);
  sums_.pressure = ReadPressure(absl::StrCat(root_, "/proc/pressure/cpu"));
}

}  // namespace tilewire::service
