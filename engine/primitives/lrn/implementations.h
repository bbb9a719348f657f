// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of lrn.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/lrn/lrn.h"

namespace tilewire::lrn {

absl::StatusOr<LrnDesc> ResolveReference(const LrnDesc& desc, const Attributes& attributes,
                                         const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const LrnDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

// The descriptor with a dst in the place of `any`; kUnimplemented for types and attributes that no
// row takes.
absl::StatusOr<LrnDesc> ResolveDefaults(const LrnDesc& desc, const Attributes& attributes);

// alpha / summands.
float ScaleOf(const LrnDesc& desc);
// How far neighbours reach on either side.
inline int64_t ReachOf(const LrnDesc& desc) { return (desc.local_size - 1) / 2; }
// 0 to the power is not finite: the padded tail does not come out as zero by itself.
inline bool SpoilsPadding(const LrnDesc& desc) { return !(desc.k > 0); }

}  // namespace tilewire::lrn

#endif  // ENGINE_PRIMITIVES_LRN_IMPLEMENTATIONS_H_
