// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; lrn.cc lists the rows. See implementation.h for resolve
// and create.
#ifndef ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/lrn/lrn.h"

namespace tilewire::lrn {

// Across the channels of nChw16c (8c for AVX2) and its 1D and 3D kin.
absl::StatusOr<LrnDesc> ResolveAvx512F32Blocked(const LrnDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Blocked(const LrnDesc& desc,
                                                                  const Attributes& attributes,
                                                                  absl::string_view name);
absl::StatusOr<LrnDesc> ResolveAvx2F32Blocked(const LrnDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Blocked(const LrnDesc& desc,
                                                                const Attributes& attributes,
                                                                absl::string_view name);

// Whatever falls into runs of memory with the same neighbours (runs.h).
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32Runs(const LrnDesc& desc,
                                                               const Attributes& attributes,
                                                               absl::string_view name);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32Runs(const LrnDesc& desc,
                                                             const Attributes& attributes,
                                                             absl::string_view name);

absl::StatusOr<LrnDesc> ResolveReference(const LrnDesc& desc, const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LrnDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<LrnDesc> ResolveDefaults(const LrnDesc& desc, const Attributes& attributes);

PrimitiveInfo InfoOf(const LrnDesc& desc, const Attributes& attributes, absl::string_view name);

// alpha / summands.
float ScaleOf(const LrnDesc& desc);
// How far neighbours reach on either side.
inline int64_t ReachOf(const LrnDesc& desc) { return (desc.local_size - 1) / 2; }
// 0 to the power is not finite: the padded tail does not come out as zero by itself.
inline bool SpoilsPadding(const LrnDesc& desc) { return !(desc.k > 0); }

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
