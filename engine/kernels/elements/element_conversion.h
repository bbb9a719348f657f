// SPDX-License-Identifier: Apache-2.0
//
// Converts one element of any type to f32, to the nearest where f32 does not hold it, and back. To
// an integer, numbers are rounded to nearest even and saturated, and NaN becomes 0. To f16 and
// bf16, they are rounded to nearest even and become infinite if too large, and NaN becomes a quiet
// NaN. Truth values are 1 and 0, and what is not 0 is true. Pure; thread-safe.
#ifndef ENGINE_KERNELS_ELEMENTS_ELEMENT_CONVERSION_H_
#define ENGINE_KERNELS_ELEMENTS_ELEMENT_CONVERSION_H_

#include <cstdint>

#include "engine/memory/data_type.h"

namespace tilewire {

// Element `index` of an array of `type`.
float LoadElement(DataType type, const void* base, int64_t index);
void StoreElement(DataType type, float value, void* base, int64_t index);

// Copies the bytes of one element.
void CopyElement(DataType type, const void* src, int64_t src_index, void* dst, int64_t dst_index);

}  // namespace tilewire

#endif  // ENGINE_KERNELS_ELEMENTS_ELEMENT_CONVERSION_H_
