// SPDX-License-Identifier: Apache-2.0
//
// The rows of reorder.cc's table, one file each, and what they share. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/kernels/attributes.h"
#include "engine/primitives/reorder/reorder.h"

namespace tilewire::reorder {

// kUnimplemented for Winograd's layout, which nobody reads and the rows named after it alone write.
absl::Status RequireBlocked(const ReorderDesc& desc);

// kUnimplemented unless the bytes of elements are copied as they are: one type, no scale, no
// post-op.
absl::Status RequirePlainCopy(const ReorderDesc& desc, const Attributes& attributes);

// kUnimplemented for other post-ops than none and one sum.
absl::Status RequireSumAtMost(const ReorderDesc& desc, const Attributes& attributes);

#define TILEWIRE_REORDER_IMPLEMENTATION(name)                                                    \
  absl::StatusOr<ReorderDesc> Resolve##name(const ReorderDesc&, const Attributes&);              \
  absl::StatusOr<std::unique_ptr<Primitive>> Create##name(const ReorderDesc&, const Attributes&, \
                                                          absl::string_view)

TILEWIRE_REORDER_IMPLEMENTATION(Compensated);
TILEWIRE_REORDER_IMPLEMENTATION(Avx512Dense);
TILEWIRE_REORDER_IMPLEMENTATION(Avx2Dense);
TILEWIRE_REORDER_IMPLEMENTATION(Avx512Blocking);
TILEWIRE_REORDER_IMPLEMENTATION(Avx2Blocking);
TILEWIRE_REORDER_IMPLEMENTATION(Avx512Weights);
TILEWIRE_REORDER_IMPLEMENTATION(Avx2Weights);
TILEWIRE_REORDER_IMPLEMENTATION(Avx512WinogradWeights);
TILEWIRE_REORDER_IMPLEMENTATION(Avx2WinogradWeights);
TILEWIRE_REORDER_IMPLEMENTATION(WinogradWeights);
TILEWIRE_REORDER_IMPLEMENTATION(BlockedCopy);
TILEWIRE_REORDER_IMPLEMENTATION(Reference);

#undef TILEWIRE_REORDER_IMPLEMENTATION

}  // namespace tilewire::reorder

#endif  // ENGINE_PRIMITIVES_REORDER_IMPLEMENTATIONS_H_
