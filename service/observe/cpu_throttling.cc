// SPDX-License-Identifier: Apache-2.0
#include "service/observe/cpu_throttling.h"

#include <algorithm>
#include <fstream>
#include <optional>

#include "absl/strings/str_cat.h"
#include "engine/base/control_groups.h"

namespace tilewire::service {
namespace {

// The file's line "<name> <number>".
std::optional<int64_t> ReadNumber(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  int64_t number = 0;
  while (file >> word >> number) {
    if (word == name) return number;
  }
  return std::nullopt;
}

std::optional<int64_t> ReadNs(const std::string& path, bool in_ns) {
  const std::optional<int64_t> number =
      ReadNumber(path, in_ns ? "throttled_time" : "throttled_usec");
  if (!number) return std::nullopt;
  return in_ns ? *number : *number * 1000;
}

}  // namespace

CpuThrottling::CpuThrottling(const std::string& root) {
  VisitControlGroups(root, "cpu", [this](const ControlGroup& group) {
    File file = {absl::StrCat(group.folder, "/cpu.stat"), group.version == 1};
    const std::optional<int64_t> now = ReadNs(file.path, file.in_ns);
    if (!now) return;
    file.last_ns = *now;
    files_.push_back(std::move(file));
  });
}

void CpuThrottling::Look(int64_t now_ns) {
  if (files_.empty() || (!looks_.empty() && now_ns - looks_.back().at_ns < kBetweenLooksNs)) return;
  int64_t most = 0;
  for (File& file : files_) {
    const int64_t seen = ReadNs(file.path, file.in_ns).value_or(file.last_ns);
    most = std::max(most, seen - file.last_ns);
    file.last_ns = seen;
  }
  looks_.push_back({now_ns, total_ns() + most});
  if (looks_.size() > kLooks) looks_.pop_front();
}

int64_t CpuThrottling::Between(int64_t begin_ns, int64_t end_ns) const {
  if (looks_.empty()) return 0;
  auto first = std::upper_bound(looks_.begin(), looks_.end(), begin_ns,
                                [](int64_t at, const Seen& seen) { return at < seen.at_ns; });
  if (first != looks_.begin()) --first;
  auto last = std::lower_bound(looks_.begin(), looks_.end(), end_ns,
                               [](const Seen& seen, int64_t at) { return seen.at_ns < at; });
  if (last == looks_.end()) --last;
  return std::max<int64_t>(0, last->total_ns - first->total_ns);
}

}  // namespace tilewire::service
