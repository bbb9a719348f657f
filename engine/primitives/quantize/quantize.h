// SPDX-License-Identifier: Apache-2.0
//
// Quantization of real numbers to 8-bit integers, and back; the types say which:
//
//   f32 to u8 or s8          dst = saturate(round(src / scale) + zero_point)
//   u8, s8 or f32 to f32     dst = (src - zero_point) * scale + shift
//
// in f32, each step rounded, by scales and zero points that are known, or by one of either that
// `range` holds at run time, as quantization_range.h computes it. round() gives the nearest
// integer, the even one of two that are equally near; NaN maps to the lowest integer. An f32 source
// of the second form holds integers.
//
// Shapes    src and dst the same, rank 1 to 12; with a range, dst may have zero points around src
//           in its last dimensions, padding_left of them in front. One scale and zero point, or one
//           per index of `axis`.
// Arguments kArgSrc, kArgDst; kArgQuantizationRange with a range.
// Layouts   any; dst may be `any`: the layout of src. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, QuantizeLinear and DequantizeLinear.
#ifndef ENGINE_PRIMITIVES_QUANTIZE_QUANTIZE_H_
#define ENGINE_PRIMITIVES_QUANTIZE_QUANTIZE_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

namespace quantize {
// ImplementationTraits::algorithm; the reference has both.
enum Algorithm : uint8_t { kKnownScales = 1, kByRange };
}  // namespace quantize

struct QuantizeDesc {
  MemoryDesc src, dst;
  int axis = 0;  // has no meaning where there is one scale
  std::vector<float> scales;
  std::vector<int32_t> zero_points;
  MemoryDesc range = {};           // [2]; then there are no scales and zero points
  Dims padding_left = {};          // of the last dimensions; empty: none
  std::vector<float> shifts = {};  // to real numbers alone, one per scale; empty: none
};
TILEWIRE_FIELDS(QuantizeDesc, src, dst, axis, scales, zero_points, range, padding_left, shifts);

//   kInvalidArgument  dims that differ, an axis outside the rank, another count of scales, zero
//                     points or shifts, a scale that is not positive, a zero point that dst does
//                     not hold, shifts of a dst of integers
TILEWIRE_PRIMITIVE_FUNCTIONS(Quantize);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_QUANTIZE_QUANTIZE_H_
