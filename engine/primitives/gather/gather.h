// SPDX-License-Identifier: Apache-2.0
//
// Gather along one axis by indices that are computed:
//
//   dst[i..., j..., k...] = src[i..., at(indices[j...]), k...]
//
// where i... is what stands before `axis` and k... what stands after it. at() drops the fraction of
// an index and counts a negative one from the end.
//
// Backward weights: diff_src[..., e, ...] = sum of diff_dst over the indices that name e, in their
// order.
//
// Shapes    dst has the dims of src with the dimension `axis` replaced by the dims of `indices`.
// Types     src and dst: all, the same. indices: f32, s32, s64.
//           Backward takes f32.
// Layouts   any; dst may be `any`: row-major, and backward src, too. Not in place.
// Arguments kArgSrc, kArgSrc1 (the indices), kArgDst; backward kArgSrc1, kArgDiffDst (both read),
//           kArgDiffWeights, in the layouts of the fields dst and src.
// Execute   kInvalidArgument for an index outside [-size, size) or NaN; nothing is written then.
// Threads   immutable; see primitive.h.
// Source    ONNX, Gather.
#ifndef ENGINE_PRIMITIVES_GATHER_GATHER_H_
#define ENGINE_PRIMITIVES_GATHER_GATHER_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct GatherDesc {
  int axis = 0;
  MemoryDesc src, indices, dst;
  PropKind prop_kind = PropKind::kForwardInference;
};
TILEWIRE_FIELDS(GatherDesc, axis, src, indices, dst, prop_kind);

//   kInvalidArgument  an axis outside the rank, dims or types that do not fit
TILEWIRE_PRIMITIVE_FUNCTIONS(Gather);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_GATHER_GATHER_H_
