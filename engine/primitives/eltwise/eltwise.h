// SPDX-License-Identifier: Apache-2.0
//
// Function of each element: dst[i] = f(src[i]), with a formula of engine/functions/functions.inc.
// May run in place (dst == src). The padded tail of dst stays zero even where f(0) is not.
//
// Backward data: diff_src[i] = f'(x) diff_dst[i], 0 where f'(x) is 0. Of src and dst one is given,
// the other is the zero descriptor: src holds x, and dst f(x), from which f' follows for some of
// the functions (functions::HasResultSlope). The derivatives are in the table of functions.
//
// Arguments kArgSrc, kArgDst; backward kArgSrc or kArgDst and kArgDiffDst (read), kArgDiffSrc.
// Types    src and dst have one type. f is computed in f32; the result of an integer type is
//          rounded to nearest even and saturated, and NaN becomes 0.
//          Backward takes f32.
// Layouts  any; dst and the gradients may be `any`: the layout of what is read.
// Source   tests/engine/rows.txt P07, Z05.
#ifndef ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_
#define ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct EltwiseDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  EltwiseOp op;
  MemoryDesc src, dst;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(EltwiseDesc, prop_kind, op, src, dst, diff_src, diff_dst);

//   kInvalidArgument  tensors differ in shape; backward both or none of src and dst are given
TILEWIRE_PRIMITIVE_FUNCTIONS(Eltwise);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_
