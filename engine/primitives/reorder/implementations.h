// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows that reorder.cc lists and that have no header of their own, and the
// checks that rows share. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire::reorder {

// kUnimplemented for Winograd's layout: no row reads it, and only the rows named after it write it.
absl::Status RequireBlocked(const ReorderDesc& desc);

// kUnimplemented unless the bytes of elements are copied as they are: one type, no scale, no
// post-op.
absl::Status RequirePlainCopy(const ReorderDesc& desc, const Attributes& attributes);

// kUnimplemented unless there are no post-ops, or only one sum.
absl::Status RequireSumAtMost(const ReorderDesc& desc, const Attributes& attributes);

#define TILEWIRE_REORDER_IMPLEMENTATION(name)                                                    \
  absl::StatusOr<ReorderDesc> Resolve##name(const ReorderDesc&, const Attributes&,               \
                                            const ImplementationFacts&);                         \
  absl::StatusOr<std::unique_ptr<Primitive>> Create##name(const ReorderDesc&, const Attributes&, \
                                                          const ImplementationFacts&)

TILEWIRE_REORDER_IMPLEMENTATION(Compensated);
TILEWIRE_REORDER_IMPLEMENTATION(WinogradWeights);
TILEWIRE_REORDER_IMPLEMENTATION(BlockedCopy);
TILEWIRE_REORDER_IMPLEMENTATION(Reference);

#undef TILEWIRE_REORDER_IMPLEMENTATION

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
