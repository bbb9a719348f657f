// SPDX-License-Identifier: Apache-2.0
//
// Function of each element: dst[i] = f(src[i]), with a formula of engine/functions/functions.inc.
// May run in place (dst == src). The padded tail of dst stays zero even where f(0) is not.
//
// Types    src and dst have one type. f is computed in f32; the result of an integer type is
//          rounded to nearest even and saturated, and NaN becomes 0.
// Layouts  any; dst may be `any`: the layout of src.
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
};
TILEWIRE_FIELDS(EltwiseDesc, prop_kind, op, src, dst);

//   kInvalidArgument  src and dst differ in shape
TILEWIRE_PRIMITIVE_FUNCTIONS(Eltwise);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ELTWISE_ELTWISE_H_
