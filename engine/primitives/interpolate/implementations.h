// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of interpolate.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_

#include "engine/primitives/interpolate/interpolate.h"

namespace tilewire::interpolate {

absl::StatusOr<InterpolateDesc> ResolveDenseRows(const InterpolateDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateDenseRows(const InterpolateDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

absl::StatusOr<InterpolateDesc> ResolveReference(const InterpolateDesc& desc,
                                                 const Attributes& attributes,
                                                 const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const InterpolateDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

}  // namespace tilewire::interpolate

#endif  // ENGINE_PRIMITIVES_INTERPOLATE_IMPLEMENTATIONS_H_
