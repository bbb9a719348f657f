// SPDX-License-Identifier: Apache-2.0
#include "engine/cpu/cores.h"

#include <sched.h>

#include <algorithm>
#include <fstream>
#include <string>
#include <thread>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "engine/base/control_groups.h"

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

}  // namespace

int QuotaCores(const std::string& root) {
  int cores = kUnlimited;
  VisitControlGroups(root, "cpu", [&cores](const ControlGroup& group) {
    cores = std::min(cores, group.version == 2 ? QuotaV2(group.folder) : QuotaV1(group.folder));
  });
  return cores;
}

int GrantedCores() { return std::max(1, std::min(AffinityCores(), QuotaCores(""))); }

}  // namespace tilewire::cpu
