// SPDX-License-Identifier: Apache-2.0
#include "engine/primitives/workspace.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/base/status_macros.h"
#include "engine/memory/workspace_tag.h"

namespace tilewire {

MemoryDesc MakeWorkspace(absl::string_view format, absl::string_view key, int64_t bytes) {
  absl::StatusOr<MemoryDesc> desc = MemoryDesc::CreateWorkspace(bytes, HashWorkspace(format, key));
  TILEWIRE_CHECK(desc.ok(), "a workspace has a size");
  return *std::move(desc);
}

absl::Status CheckWorkspace(absl::string_view primitive, PropKind prop_kind,
                            const MemoryDesc& workspace, const MemoryDesc& saved,
                            absl::string_view depends_on) {
  if (!IsBackward(prop_kind)) {
    if (workspace.IsZero()) return absl::OkStatus();
    return InvalidArgument(primitive, ": a workspace ", workspace.ToString(), " is given to ",
                           PropKindName(prop_kind), ", but backward alone reads one");
  }
  if (workspace == saved) return absl::OkStatus();
  if (saved.IsZero()) {
    return InvalidArgument(primitive, ": the workspace is ", workspace.ToString(),
                           ", but forward saves none here");
  }
  if (workspace.IsZero()) {
    return InvalidArgument(primitive, ": no workspace is given, but forward saves ",
                           saved.ToString(),
                           ": it has to run as forward_training, for inference it leaves none");
  }
  return InvalidArgument(primitive, ": the workspace ", workspace.ToString(),
                         " is of another problem, forward saves ", saved.ToString(),
                         " here; it depends on ", depends_on);
}

}  // namespace tilewire
