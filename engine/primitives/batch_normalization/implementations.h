// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of batch_normalization.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"

namespace tilewire::batch_normalization {

absl::StatusOr<BatchNormalizationDesc> ResolveReference(const BatchNormalizationDesc& desc,
                                                        const Attributes& attributes,
                                                        const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const BatchNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           const ImplementationFacts& facts);

PrimitiveInfo InfoOf(const BatchNormalizationDesc& desc, const Attributes& attributes,
                     const ImplementationFacts& facts);

// The chain with the relu of `fuse_relu`, which comes first.
PostOps PostOpsOf(const BatchNormalizationDesc& desc, const Attributes& attributes);

// The pointers of an execution; scale and shift are null where there are none.
struct ChannelParameters {
  const float *mean, *variance, *scale, *shift;
};
ChannelParameters ParametersOf(const BatchNormalizationDesc& desc, const ExecuteArgs& args);

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
