// SPDX-License-Identifier: Apache-2.0
//
// Tags of opaque workspaces (FormatKind::kWorkspace): 64 bits that say what the bytes are and what
// they depend on. Pure functions; thread-safe.
#ifndef ENGINE_MEMORY_WORKSPACE_TAG_H_
#define ENGINE_MEMORY_WORKSPACE_TAG_H_

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"

namespace tilewire {

// FNV-1a of the format's name and of the bytes of a key: the same on every machine.
uint64_t HashWorkspace(absl::string_view format, absl::string_view key);

std::string WorkspaceTagName(uint64_t tag);  // "workspace_0123456789abcdef"

}  // namespace tilewire

#endif  // ENGINE_MEMORY_WORKSPACE_TAG_H_
