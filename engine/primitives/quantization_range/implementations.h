// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_QUANTIZATION_RANGE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_QUANTIZATION_RANGE_IMPLEMENTATIONS_H_

#include "engine/primitives/quantization_range/quantization_range.h"

namespace tilewire::quantization_range {

// The two numbers of a tensor whose elements, and 0, lie between `low` and `high`.
void StoreRange(float low, float high, float* dst);

// A src without gaps, in the order of its memory.
TILEWIRE_ROW(QuantizationRangeDesc, DenseExtremes);

TILEWIRE_ROW(QuantizationRangeDesc, Reference);

}  // namespace tilewire::quantization_range

#endif  // ENGINE_PRIMITIVES_QUANTIZATION_RANGE_IMPLEMENTATIONS_H_
