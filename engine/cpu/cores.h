// SPDX-License-Identifier: Apache-2.0
//
// How many cores this process is granted: those of its affinity mask, but no more than the CPU
// quota of its cgroup (v1 or v2), rounded down: a thread more than the quota feeds would be stopped
// for a part of every period, and the others would wait for it. At least 1. Thread-safe.
#ifndef ENGINE_CPU_CORES_H_
#define ENGINE_CPU_CORES_H_

#include <string>

namespace tilewire::cpu {

int GrantedCores();

// The quota alone, at least 1 and a large number if there is none, as the files of Linux below
// `root` tell it: root/proc/self/cgroup and root/sys/fs/cgroup.
int QuotaCores(const std::string& root);

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_CORES_H_
