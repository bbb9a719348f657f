// SPDX-License-Identifier: Apache-2.0
//
// A function of the elements of one to three tensors:
//
//   dst[i] = function(srcs[0][i], ...)
//
// engine/functions/function.h lists the functions. A source whose size is 1 along a dimension is
// broadcast along it. Most functions have vectors of their own here; models use binary.h and
// eltwise.h where those have generated code for f32.
//
// Shapes    srcs have the rank of dst, 1 to 12, and along every dimension its size or 1.
// Types     srcs and dst f32, f64 or one type of integers, which wrap around; an integer divided by
//           0 is 0. Truth values, the results of predicates and src 0 of kWhere, are 1 and 0 of
//           f32 or u8.
// Layouts   any, each tensor its own; dst may be `any`: row-major. Not in place.
// Arguments kArgMultipleSrc + i, kArgDst.
// Threads   immutable; see primitive.h.
// Wire      not offered: only models use it.
// Source    ONNX.
#ifndef ENGINE_PRIMITIVES_ELEMENTWISE_ELEMENTWISE_H_
#define ENGINE_PRIMITIVES_ELEMENTWISE_ELEMENTWISE_H_

#include <vector>

#include "engine/functions/function.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct ElementwiseDesc {
  functions::Elementwise function;
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
};
TILEWIRE_FIELDS(ElementwiseDesc, function, srcs, dst);

//   kInvalidArgument  another count of sources than the function has, dims that are not broadcast
TILEWIRE_PRIMITIVE_FUNCTIONS(Elementwise);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ELEMENTWISE_ELEMENTWISE_H_
