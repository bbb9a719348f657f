// SPDX-License-Identifier: Apache-2.0
//
// The control groups (cgroups, v1 and v2) that this process is in: a limit of a group binds all
// groups below it, so a search for one visits the process's own group and every parent.
#ifndef ENGINE_BASE_CONTROL_GROUPS_H_
#define ENGINE_BASE_CONTROL_GROUPS_H_

#include <string>

#include "absl/functional/function_ref.h"
#include "absl/strings/string_view.h"

namespace tilewire {

struct ControlGroup {
  int version = 2;     // 1: the group is one of the asked controller's own hierarchy
  std::string name;    // as /proc/self/cgroup has it, "/" for the root
  std::string folder;  // holds its files, if it is there
};

// Calls `visit` for every group that may limit this process's use of what `controller` ("cpu",
// "memory") controls, from its own group up to the root of each hierarchy. The files of Linux are
// read below `root`: root/proc/self/cgroup and root/sys/fs/cgroup. Thread-safe.
void VisitControlGroups(const std::string& root, absl::string_view controller,
                        absl::FunctionRef<void(const ControlGroup& group)> visit);

}  // namespace tilewire

#endif  // ENGINE_BASE_CONTROL_GROUPS_H_
