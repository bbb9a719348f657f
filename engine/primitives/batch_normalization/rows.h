// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization with given statistics by generated code (elementwise_kernel.h), shared by
// avx512_f32 and avx2_f32. Mean, variance, scale and shift become one line per channel,
// dst = a src + b, computed into the scratchpad at every execution, in src's layout of channels.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_ROWS_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_ROWS_H_

#include "engine/primitives/batch_normalization/batch_normalization.h"

namespace tilewire::batch_normalization {

absl::StatusOr<BatchNormalizationDesc> ResolveRows(const BatchNormalizationDesc& desc,
                                                   const Attributes& attributes,
                                                   const ImplementationFacts& facts);
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const BatchNormalizationDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::batch_normalization

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_ROWS_H_
