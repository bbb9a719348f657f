// SPDX-License-Identifier: Apache-2.0
//
// The numbers of a tensor in another type:
//
//   dst[i] = src[i] in dst's type, by way of the types `via` one after the other
//
// Integers wrap around (modulo 2^bits); real numbers become integers towards zero, the nearest that
// the type has if they are outside its range, and NaN becomes 0. To a floating-point type, numbers
// are rounded to nearest even; to bool, what is not 0 is true; true is 1. The reorder primitive
// rounds and saturates instead, and converts only types of MKL-DNN.
//
// Shapes    src and dst of the same dims, rank 1 to 12.
// Types     all, and all pairs of them; up to kMostConversionsBetween between them.
// Layouts   any; dst may be `any`: the layout of src. Not in place.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX, Cast.
#ifndef ENGINE_PRIMITIVES_CONVERT_CONVERT_H_
#define ENGINE_PRIMITIVES_CONVERT_CONVERT_H_

#include <vector>

#include "engine/memory/data_type.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

inline constexpr size_t kMostConversionsBetween = 4;

struct ConvertDesc {
  MemoryDesc src, dst;
  std::vector<DataType> via = {};
};
TILEWIRE_FIELDS(ConvertDesc, src, dst, via);

//   kInvalidArgument  dims that differ, too many types between
TILEWIRE_PRIMITIVE_FUNCTIONS(Convert);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONVERT_CONVERT_H_
