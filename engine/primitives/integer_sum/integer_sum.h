// SPDX-License-Identifier: Apache-2.0
//
// Sum of 8-bit integers as the real numbers that they stand for, rounded to 8-bit integers again:
//
//   real = sum over i of (srcs[i] - zero_points[i]) * scales[i], or 0 where relu and that is below
//   dst  = saturate(round(real / dst_scale) + dst_zero_point)
//
// in f32, in the order of the sources, so that it gives the bits of the operations that it stands
// for. round() gives the nearest integer, the even one of two that are equally near.
//
// Shapes    srcs and dst the same, rank 1 to 12.
// Types     u8 or s8, each tensor its own.
// Layouts   any; dst may be `any`: the layout of srcs[0]. The generated rows and dense_loop take
//           one dense layout without padding.
// Arguments kArgMultipleSrc + i, kArgDst; dst may be a source of its layout and size.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX Runtime, QLinearAdd.
#ifndef ENGINE_PRIMITIVES_INTEGER_SUM_INTEGER_SUM_H_
#define ENGINE_PRIMITIVES_INTEGER_SUM_INTEGER_SUM_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct IntegerSumDesc {
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
  std::vector<float> scales;  // one per source, positive
  std::vector<int32_t> zero_points;
  float dst_scale = 1;
  int32_t dst_zero_point = 0;
  bool relu = false;
};
TILEWIRE_FIELDS(IntegerSumDesc, srcs, dst, scales, zero_points, dst_scale, dst_zero_point, relu);

//   kInvalidArgument  no source, dims that differ, another count of scales or zero points than of
//                     sources, a scale that is not positive
TILEWIRE_PRIMITIVE_FUNCTIONS(IntegerSum);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_INTEGER_SUM_INTEGER_SUM_H_
