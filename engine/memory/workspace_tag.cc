// SPDX-License-Identifier: Apache-2.0
#include "engine/memory/workspace_tag.h"

#include "absl/strings/str_cat.h"

namespace tilewire {

uint64_t HashWorkspace(absl::string_view format, absl::string_view key) {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&hash](absl::string_view text) {
    for (const char byte : text) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001b3;
  };
  mix(format);
  mix(absl::string_view("", 1));  // the end of the name
  mix(key);
  return hash;
}

std::string WorkspaceTagName(uint64_t tag) {
  return absl::StrCat("workspace_", absl::Hex(tag, absl::kZeroPad16));
}

}  // namespace tilewire
