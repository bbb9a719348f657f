// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"

namespace tilewire::cpu {
namespace {

constexpr int kUnlimited = 1 << 20;

int AffinityCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0) return CPU_COUNT(&allowed);
  // More processors than a cpu_set_t holds.
  return static_cast<int>(std::thread::hardware_concurrency());
}

int CoresOf(int64_t quota_us, int64_t period_us) {
  if (quota_us <= 0 || period_us <= 0) return kUnlimited;
  return static_cast<int>(std::clamp<int64_t>(quota_us / period_us, 1, kUnlimited));
}

// cgroup v2: "<quota|max> <period>".
int QuotaV2(const std::string& folder) {
  std::ifstream file(absl::StrCat(folder, "/cpu.max"));
  std::string quota;
  int64_t period_us = 0, quota_us = 0;
  if (!(file >> quota >> period_us) || !absl::SimpleAtoi(quota, &quota_us)) return kUnlimited;
  return CoresOf(quota_us, period_us);
}

int QuotaV1(const std::string& folder) {
  std::ifstream quota_file(absl::StrCat(folder, "/cpu.cfs_quota_us"));
  std::ifstream period_file(absl::StrCat(folder, "/cpu.cfs_period_us"));
  int64_t quota_us = 0, period_us = 0;
  if (!(quota_file >> quota_us) || !(period_file >> period_us)) return kUnlimited;
  return CoresOf(quota_us, period_us);
}

// The tightest quota from `group` up to the root: a parent's limit binds its children.
int TightestQuota(const std::string& mount, absl::string_view group,
                  int (*quota)(const std::string& folder)) {
  int cores = kUnlimited;
  while (true) {
    cores = std::min(cores, quota(absl::StrCat(mount, group)));
    const size_t slash = group.rfind('/');
    if (group.empty() || slash == absl::string_view::npos) return cores;
    group = group.substr(0, slash);
  }
}

}  // namespace

// Lines of /proc/self/cgroup: "<id>:<controllers>:<group>"; no controllers for v2.
int QuotaCores(const std::string& root) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  int cores = kUnlimited;
  std::ifstream file(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3) continue;
    const std::string& group = fields[2];
    if (fields[1].empty()) {
      cores = std::min(cores, TightestQuota(mount, group, QuotaV2));
    }
    for (absl::string_view controller : absl::StrSplit(fields[1], ',')) {
      if (controller != "cpu") continue;
      cores = std::min(cores, TightestQuota(absl::StrCat(mount, "/cpu"), group, QuotaV1));
    }
  }
  return cores;
}

int GrantedCores() { return std::max(1, std::min(AffinityCores(), QuotaCores(""))); }

}  // namespace tilewire::cpu
