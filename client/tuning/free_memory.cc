// SPDX-License-Identifier: Apache-2.0
#include "client/tuning/free_memory.h"

#include <algorithm>
#include <fstream>
#include <limits>
#include <optional>

#include "absl/strings/str_cat.h"
#include "client/amount_text.h"
#include "engine/base/control_groups.h"

namespace tilewire::client {
namespace {

std::optional<int64_t> NumberIn(const std::string& path) {
  int64_t number = 0;
  return std::ifstream(path) >> number ? std::optional(number) : std::nullopt;
}

// The number in the line that begins with the name.
std::optional<int64_t> NumberNamed(const std::string& path, const std::string& name) {
  std::ifstream file(path);
  std::string word;
  int64_t number = 0;
  while (file >> word) {
    if (word == name && file >> number) return number;
    file.clear();
    file.ignore(std::numeric_limits<std::streamsize>::max(), '\n');
  }
  return std::nullopt;
}

std::optional<int64_t> LeftBy(const ControlGroup& group) {
  const auto at = [&](const char* of_v1, const char* of_v2) {
    return absl::StrCat(group.folder, "/", group.version == 1 ? of_v1 : of_v2);
  };
  const auto limit = NumberIn(at("memory.limit_in_bytes", "memory.max"));
  const auto used = NumberIn(at("memory.usage_in_bytes", "memory.current"));
  if (!limit || !used) return std::nullopt;
  const std::string cached = group.version == 1 ? "total_inactive_file" : "inactive_file";
  return *limit - *used + NumberNamed(group.folder + "/memory.stat", cached).value_or(0);
}

}  // namespace

int64_t FreeMemory(const std::string& root) {
  int64_t free = std::numeric_limits<int64_t>::max();
  if (const auto kb = NumberNamed(root + "/proc/meminfo", "MemAvailable:")) free = *kb * 1024;
  VisitControlGroups(root, "memory", [&free](const ControlGroup& group) {
    if (const auto left = LeftBy(group)) free = std::clamp<int64_t>(*left, 0, free);
  });
  return free;
}

absl::Status CheckMemory(const std::string& source, int64_t count, int64_t bytes, int64_t free) {
  if (count <= free / std::max<int64_t>(bytes, 1)) return absl::OkStatus();
  return absl::ResourceExhaustedError(
      absl::StrCat(source, ": ", CountText(count, "example"), " of ", BytesText(bytes),
                   " each do not fit the memory that is free, ", BytesText(free),
                   ": give fewer, as a few hundred are enough"));
}

}  // namespace tilewire::client
