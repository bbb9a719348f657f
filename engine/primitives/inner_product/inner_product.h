// SPDX-License-Identifier: Apache-2.0
//
// Inner product (fully connected layer), forward:
//
//   dst[n,oc] = postops(bias[oc] + sum over ic, spatial s of src[n,ic,s] * weights[oc,ic,s])
//
// and backward:
//
//   backward_data     diff_src[n,ic,s] = postops(sum over oc of diff_dst[n,oc] * weights[oc,ic,s])
//   backward_weights  diff_weights[oc,ic,s] = postops(sum over n of diff_dst[n,oc] * src[n,ic,s])
//                     diff_bias[oc] = postops(sum over n of diff_dst[n,oc])
//
// Shapes   src [N,C] or [N,C,spatial...], weights [O,C] or [O,C,spatial...], bias [O] or the zero
//          descriptor, dst [N,O].
// Types    as convolution's; backward f32. weighted_gradients.h says what the fields of a
//          descriptor are then, and which post-ops there are.
// Layouts  Any tensor may be `any`: the primitive chooses.
// Order    Rows of dst and of diff_src do not depend on N. An element of diff_weights adds its N
//          products in an order that depends on N alone, from 128 on in chains of 64: a batch that
//          is cut gives other bits.
// Source   tests/engine/rows.txt P05, Q08.
#ifndef ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_
#define ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct InnerProductDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, weights, bias, dst;
};
TILEWIRE_FIELDS(InnerProductDesc, prop_kind, src, weights, bias, dst);

//   kInvalidArgument  shapes that do not fit each other
TILEWIRE_PRIMITIVE_FUNCTIONS(InnerProduct);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_INNER_PRODUCT_INNER_PRODUCT_H_
