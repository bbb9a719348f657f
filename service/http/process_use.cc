// SPDX-License-Identifier: Apache-2.0
#include "service/http/process_use.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "engine/base/control_groups.h"

namespace tilewire::service {
namespace {

// Fields of /proc/self/stat after the name of the program, which may hold anything.
enum StatField : size_t {
  kUserTicks = 11,
  kSystemTicks,
  kStartTicks = 19,
  kVirtual,
  kResidentPages
};

// The number in the line of `file` that begins with `key`; nullopt if there is none.
std::optional<double> NumberIn(const std::string& file, const std::string& key) {
  std::ifstream lines(file);
  for (std::string line; std::getline(lines, line);) {
    const std::vector<std::string> words = absl::StrSplit(line, ' ', absl::SkipWhitespace());
    double number = 0;
    if (words.size() >= 2 && words[0] == key && absl::SimpleAtod(words[1], &number)) return number;
  }
  return std::nullopt;
}

std::vector<double> StatOfProcess(const std::string& root) {
  std::ifstream file(absl::StrCat(root, "/proc/self/stat"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  std::vector<double> fields;
  for (absl::string_view field :
       absl::StrSplit(text.substr(text.rfind(')') + 1), ' ', absl::SkipWhitespace())) {
    double number = 0;  // the first field is a letter
    (void)absl::SimpleAtod(field, &number);
    fields.push_back(number);
  }
  fields.resize(kResidentPages + 1);
  return fields;
}

// The group's own, whose parents have other processes.
double ThrottledSeconds(const std::string& root) {
  std::optional<double> seconds;
  VisitControlGroups(root, "cpu", [&seconds](const ControlGroup& group) {
    if (seconds) return;
    const std::string file = absl::StrCat(group.folder, "/cpu.stat");
    if (const auto us = NumberIn(file, "throttled_usec")) seconds = *us * 1e-6;
    if (const auto ns = NumberIn(file, "throttled_time")) seconds = *ns * 1e-9;
  });
  return seconds.value_or(0);
}

int64_t OpenDescriptors(const std::string& root) {
  std::error_code error;
  const std::filesystem::directory_iterator open(absl::StrCat(root, "/proc/self/fd"), error);
  return std::distance(open, std::filesystem::directory_iterator());
}

}  // namespace

ProcessUse UseOfProcess(const std::string& root) {
  const std::vector<double> stat = StatOfProcess(root);
  const auto ticks = static_cast<double>(sysconf(_SC_CLK_TCK));
  rlimit descriptors = {};
  getrlimit(RLIMIT_NOFILE, &descriptors);
  const double boot = NumberIn(absl::StrCat(root, "/proc/stat"), "btime").value_or(0);
  return {.cpu_seconds = (stat[kUserTicks] + stat[kSystemTicks]) / ticks,
          .start_seconds = boot + stat[kStartTicks] / ticks,
          .resident_bytes = static_cast<int64_t>(stat[kResidentPages]) * sysconf(_SC_PAGE_SIZE),
          .virtual_bytes = static_cast<int64_t>(stat[kVirtual]),
          .open_fds = OpenDescriptors(root),
          .max_fds = static_cast<int64_t>(descriptors.rlim_cur),
          .throttled_seconds = ThrottledSeconds(root)};
}

// Lines such as "MemTotal:  16384 kB".
MachineMemory MemoryOfMachine(const std::string& root) {
  const std::string file = absl::StrCat(root, "/proc/meminfo");
  const auto bytes = [&file](const char* key) {
    return static_cast<int64_t>(NumberIn(file, key).value_or(0)) * 1024;
  };
  const int64_t total = bytes("MemTotal:");
  return {.total_bytes = total, .used_bytes = total - bytes("MemAvailable:")};
}

// The first line of /proc/stat: "cpu", then ticks for user, nice, system, idle, iowait, irq,
// softirq and steal. The ones of guests are in those of users.
double MachineCpu::ShareSinceLast() {
  std::ifstream file(absl::StrCat(root_, "/proc/stat"));
  std::string name;
  double user = 0, nice = 0, system = 0, idle = 0, waiting = 0, irq = 0, softirq = 0, steal = 0;
  file >> name >> user >> nice >> system >> idle >> waiting >> irq >> softirq >> steal;
  if (!file || name != "cpu") return 0;
  const double busy = user + nice + system + irq + softirq + steal;
  const double worked = std::max(0.0, busy - std::exchange(busy_, busy));
  const double rested = std::max(0.0, idle + waiting - std::exchange(idle_, idle + waiting));
  return worked + rested > 0 ? worked / (worked + rested) : 0;
}

}  // namespace tilewire::service
