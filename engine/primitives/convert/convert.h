// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a tensor in another type:
//
//   dst[i] = src[i] in dst's type
//
// Integers wrap around (modulo 2^bits); real numbers become integers towards zero, the nearest that
// the type has if they are outside its range, and NaN becomes 0. To a floating-point type, numbers
// are rounded to nearest even; to bool, what is not 0 is true; true is 1. The reorder primitive
// rounds and saturates instead, and converts only types of MKL-DNN.
//
// Shapes    src and dst of the same dims, rank 1 to 12.
// Types     all, and all pairs of them.
// Layouts   any; dst may be `any`: the layout of src. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, Cast.
#ifndef ENGINE_PRIMITIVES_CONVERT_CONVERT_H_
#define ENGINE_PRIMITIVES_CONVERT_CONVERT_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct ConvertDesc {
  MemoryDesc src, dst;
};
TILEWIRE_FIELDS(ConvertDesc, src, dst);

//   kInvalidArgument  dims that differ
TILEWIRE_PRIMITIVE_FUNCTIONS(Convert);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONVERT_CONVERT_H_
