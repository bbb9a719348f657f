// SPDX-License-Identifier: Apache-2.0
//
// Layer normalization of rows that lie densely in memory, one after the other at a constant step,
// shared by avx512_f32 and avx2_f32. The generated code passes three times over a row, for the
// mean, for the variance and for the result, with a vector's lanes times four vectors of partial
// sums, so that the order of addition depends on the length of a row alone.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROWS_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROWS_H_

#include "engine/primitives/layer_normalization/layer_normalization.h"

namespace tilewire::layer_normalization {

absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const LayerNormalizationDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::layer_normalization

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_ROWS_H_
