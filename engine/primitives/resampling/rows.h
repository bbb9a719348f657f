// SPDX-License-Identifier: Apache-2.0
//
// Resampling row by row, shared by avx512_f32 and avx2_f32. Takes nchw, and layouts whose
// channels, all or a block of them, follow each other at a pixel (nhwc, nChw16c, nChw8c); the same
// with one and three spatial dimensions.
#ifndef ENGINE_PRIMITIVES_RESAMPLING_ROWS_H_
#define ENGINE_PRIMITIVES_RESAMPLING_ROWS_H_

#include "engine/primitives/resampling/resampling.h"

namespace tilewire::resampling {

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const ResamplingDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::resampling

#endif  // ENGINE_PRIMITIVES_RESAMPLING_ROWS_H_
