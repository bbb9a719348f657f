// SPDX-License-Identifier: Apache-2.0
//
// The largest (or smallest) elements along one axis, best first: as many as dst has there; the
// elements, or their indices along the axis as numbers. Of equal elements the first is better, or
// the last; NaN is larger than any number, and one NaN equals another.
//
// Shapes    src and dst the same but along `axis`, where dst has no more than src; rank 1 to 12.
// Types     src f32, f64 or any integers; dst the same, of indices f32: they are exact up to 2^24.
// Layouts   any; dst may be `any`: the layout of src. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, TopK, ArgMax, ArgMin.
#ifndef ENGINE_PRIMITIVES_TOP_K_TOP_K_H_
#define ENGINE_PRIMITIVES_TOP_K_TOP_K_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct TopKDesc {
  MemoryDesc src, dst;
  int axis = 0;
  bool largest = true;          // else the smallest
  bool indices = false;         // dst holds indices, not elements
  bool last_of_equals = false;  // the last of equal elements is the better one
};
TILEWIRE_FIELDS(TopKDesc, src, dst, axis, largest, indices, last_of_equals);

//   kInvalidArgument  an axis outside the rank, dims that differ off it, more in dst than in src
TILEWIRE_PRIMITIVE_FUNCTIONS(TopK);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_TOP_K_TOP_K_H_
