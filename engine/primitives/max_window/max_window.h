// SPDX-License-Identifier: Apache-2.0
//
// The maximum of each window (the first of equals; NaN only if all are NaN), or its index in the
// source. A window outside the source gives -infinity, or index -1.
//
//   kElement           the element
//   kIndex             its index in the whole source, row-major
//   kColumnMajorIndex  the same with the spatial dimensions in the order of columns
//
// An index is held in f32, rounded to it beyond 2^24.
//
// Shapes    src and dst [N,C,spatial...] of one to three spatial dimensions. Tap t of window i is
//           element i * stride - padding_left + t * (dilation + 1); dst may be of any size.
// Types     f32.
// Layouts   any; dst may be `any`: row-major. plain_rows takes row-major tensors. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it. pooling.h has maxima without indices and dilations.
// Source    ONNX, MaxPool with its second result, and dilated.
#ifndef ENGINE_PRIMITIVES_MAX_WINDOW_MAX_WINDOW_H_
#define ENGINE_PRIMITIVES_MAX_WINDOW_MAX_WINDOW_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class MaxWindowResult : uint8_t { kElement, kIndex, kColumnMajorIndex };

struct MaxWindowDesc {
  MaxWindowResult result = MaxWindowResult::kElement;
  MemoryDesc src, dst;
  Dims kernel, strides, dilations, padding_left;  // one entry per spatial dimension
};
TILEWIRE_FIELDS(MaxWindowDesc, result, src, dst, kernel, strides, dilations, padding_left);

//   kInvalidArgument  ranks, batches or channels that differ, another count of kernel sizes and
//                     so on than of spatial dimensions, a kernel or stride below 1, a dilation or
//                     padding below 0, or so large that a place overflows
TILEWIRE_PRIMITIVE_FUNCTIONS(MaxWindow);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_MAX_WINDOW_MAX_WINDOW_H_
