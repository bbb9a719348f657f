// SPDX-License-Identifier: Apache-2.0
//
// The scale and zero point for the quantization of a tensor to u8 whose range is known at run time
// only: dst holds two numbers, a scale and a zero point,
//
//   scale      = (max(src, 0) - min(src, 0)) / 255, or 1 where that is not positive
//   zero_point = round(-min(src, 0) / scale), the even one of two that are equally near
//
// in f32, where max and min are of all elements. Elements that are NaN do not count.
//
// Shapes    src of rank 1 to 12; dst [2].
// Types     f32.
// Layouts   src any; dst plain, or `any`.
// Arguments kArgSrc, kArgDst.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, DynamicQuantizeLinear.
#ifndef ENGINE_PRIMITIVES_QUANTIZATION_RANGE_QUANTIZATION_RANGE_H_
#define ENGINE_PRIMITIVES_QUANTIZATION_RANGE_QUANTIZATION_RANGE_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct QuantizationRangeDesc {
  MemoryDesc src, dst;
};
TILEWIRE_FIELDS(QuantizationRangeDesc, src, dst);

//   kInvalidArgument  dst is not [2]
TILEWIRE_PRIMITIVE_FUNCTIONS(QuantizationRange);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_QUANTIZATION_RANGE_QUANTIZATION_RANGE_H_
