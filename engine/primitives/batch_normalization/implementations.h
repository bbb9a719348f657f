// SPDX-License-Identifier: Apache-2.0
//
// What each row of the table consists of; batch_normalization.cc lists the rows. See
// implementation.h for resolve and create.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_

#include <memory>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "engine/primitives/batch_normalization/batch_normalization.h"

namespace tilewire::batch_normalization {

absl::StatusOr<BatchNormalizationDesc> ResolveAvx512F32(const BatchNormalizationDesc& desc,
                                                        const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx512F32(const BatchNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

absl::StatusOr<BatchNormalizationDesc> ResolveAvx2F32(const BatchNormalizationDesc& desc,
                                                      const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateAvx2F32(const BatchNormalizationDesc& desc,
                                                         const Attributes& attributes,
                                                         absl::string_view name);

absl::StatusOr<BatchNormalizationDesc> ResolveReference(const BatchNormalizationDesc& desc,
                                                        const Attributes& attributes);
absl::StatusOr<std::unique_ptr<Primitive>> CreateReference(const BatchNormalizationDesc& desc,
                                                           const Attributes& attributes,
                                                           absl::string_view name);

PrimitiveInfo InfoOf(const BatchNormalizationDesc& desc, const Attributes& attributes,
                     absl::string_view name);

// The chain with the relu of `fuse_relu`, which comes first.
PostOps PostOpsOf(const BatchNormalizationDesc& desc, const Attributes& attributes);

// The pointers of an execution; scale and shift are null where there are none.
struct ChannelParameters {
  const float *mean, *variance, *scale, *shift;
};
ChannelParameters ParametersOf(const BatchNormalizationDesc& desc, const ExecuteArgs& args);

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_IMPLEMENTATIONS_H_
