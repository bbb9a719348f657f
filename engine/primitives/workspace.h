// SPDX-License-Identifier: Apache-2.0
//
// Workspaces: what a primitive that runs forward for training saves for backward alone. It is an
// argument (kArgWorkspace) that belongs to the caller and lives from forward to backward, and no
// scratchpad. A backward descriptor has the one of its forward primitive in its field `workspace`:
// rows that write one format agree on the tag, so that either may follow the other. Pure; thread-
// safe.
//
// Source: tests/engine/rows.txt A16, S06.
#ifndef ENGINE_PRIMITIVES_WORKSPACE_H_
#define ENGINE_PRIMITIVES_WORKSPACE_H_

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "engine/memory/memory_desc.h"
#include "engine/primitives/propagation.h"

namespace tilewire {

// The descriptor of `bytes` >= 0 in the named format, which depend on `key`: fields.h makes keys.
MemoryDesc MakeWorkspace(absl::string_view format, absl::string_view key, int64_t bytes);

// The field `workspace` of a descriptor of this propagation, where forward training of the problem
// saves `saved`, the zero descriptor if nothing. `depends_on` names what the bytes depend on.
//   kInvalidArgument  it is given to forward; it is missing, as after inference; it is of another
//                     problem; nothing is saved
absl::Status CheckWorkspace(absl::string_view primitive, PropKind prop_kind,
                            const MemoryDesc& workspace, const MemoryDesc& saved,
                            absl::string_view depends_on);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_WORKSPACE_H_
