// SPDX-License-Identifier: Apache-2.0
#include "engine/base/control_groups.h"

#include <fstream>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"

namespace tilewire {
namespace {

// From `name` to the root. Without a namespace of control groups a container's group is named as
// the host sees it, while its files are mounted as the root's: most folders are then missing.
void VisitUpwards(int version, const std::string& mount, absl::string_view name,
                  absl::FunctionRef<void(const ControlGroup& group)> visit) {
  while (name.size() > 1) {
    visit({version, std::string(name), absl::StrCat(mount, name)});
    name = name.substr(0, name.rfind('/'));
  }
  visit({version, "/", mount});
}

}  // namespace

// Lines of /proc/self/cgroup: "<id>:<controllers>:<group>"; no controllers for v2.
void VisitControlGroups(const std::string& root, absl::string_view controller,
                        absl::FunctionRef<void(const ControlGroup& group)> visit) {
  const std::string mount = absl::StrCat(root, "/sys/fs/cgroup");
  std::ifstream file(absl::StrCat(root, "/proc/self/cgroup"));
  for (std::string line; std::getline(file, line);) {
    const std::vector<std::string> fields = absl::StrSplit(line, absl::MaxSplits(':', 2));
    if (fields.size() != 3 || fields[2].empty() || fields[2][0] != '/') continue;
    if (fields[1].empty()) VisitUpwards(2, mount, fields[2], visit);
    for (absl::string_view one : absl::StrSplit(fields[1], ',')) {
      if (one == controller)
        VisitUpwards(1, absl::StrCat(mount, "/", controller), fields[2], visit);
    }
  }
}

}  // namespace tilewire
