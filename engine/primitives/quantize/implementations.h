// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_

#include "engine/primitives/quantize/quantize.h"

namespace tilewire::quantize {

// To u8 by a range, in generated code, which asks the layouts to have channels last, or no padding
// and the same order on both sides.
TILEWIRE_ROW(QuantizeDesc, ByRange);

// To real numbers with known scales, in generated code, which asks both sides to have one order,
// without gaps. Indices of an innermost axis are few, or fill vectors.
TILEWIRE_ROW(QuantizeDesc, Channels);

// With known scales and zero points.
TILEWIRE_ROW(QuantizeDesc, Rows);

TILEWIRE_ROW(QuantizeDesc, Reference);

// -0 where there are none, which changes no number that it is added to.
inline float ShiftOf(const QuantizeDesc& desc, size_t index) {
  return desc.shifts.empty() ? -0.0f : desc.shifts[index];
}

}  // namespace tilewire::quantize

#endif  // ENGINE_PRIMITIVES_QUANTIZE_IMPLEMENTATIONS_H_
