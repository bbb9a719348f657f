// SPDX-License-Identifier: Apache-2.0
//
// Shuffle along one axis of size C with group size G (C % G == 0): the axis, seen as a matrix, is
// transposed.
//
//   forward   dst[v*(C/G) + u] = src[u*G + v]      u in [0,C/G), v in [0,G)
//   backward  the same with G replaced by C/G: the inverse (arguments diff_dst -> diff_src)
//
// ShuffleNet's channel_shuffle(groups = g) is forward with group_size = C/g (the trap of
// tests/engine/rows.txt P13).
//
// Arguments kArgSrc, kArgDst; backward kArgDiffDst (read), kArgDiffSrc (written).
// Layouts   src and dst the same; `dst` may be `any`. Types: all (backward: f32).
// Source    tests/engine/rows.txt P13.
#ifndef ENGINE_PRIMITIVES_SHUFFLE_SHUFFLE_H_
#define ENGINE_PRIMITIVES_SHUFFLE_SHUFFLE_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct ShuffleDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, dst;  // backward: diff_dst (read) and diff_src (written)
  int axis = 1;
  int64_t group_size = 1;
};
TILEWIRE_FIELDS(ShuffleDesc, prop_kind, src, dst, axis, group_size);

//   kInvalidArgument  an axis outside the rank, a group size that does not divide
TILEWIRE_PRIMITIVE_FUNCTIONS(Shuffle);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SHUFFLE_SHUFFLE_H_
