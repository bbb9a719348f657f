// SPDX-License-Identifier: Apache-2.0
//
// How many cores this process is granted: those of its affinity mask, but no more than the CPU
// quota of its cgroup (v1 or v2), rounded up; at least 1. Thread-safe.
#ifndef ENGINE_CPU_CORES_H_
#define ENGINE_CPU_CORES_H_

namespace tilewire::cpu {

int GrantedCores();

}  // namespace tilewire::cpu

#endif  // ENGINE_CPU_CORES_H_
