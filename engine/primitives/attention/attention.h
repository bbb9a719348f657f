// SPDX-License-Identifier: Apache-2.0
//
// Attention, for batches b, heads h, queries m, keys n:
//
//   score[b,h,m,n] = scale * sum over d of queries[b,h,m,d] * keys[b,g,n,d]
//                    + sum over i of masks[i][b,h,m,n]
//   dst[b,h,m,:]   = sum over n of softmax(score[b,h,m,:])[n] * values[b,g,n,:]
//
// where g = h / (H / G): neighbouring heads share keys and values. If `causal`, scores with n > m
// are -infinity.
//
// Shapes   srcs are queries [B,H,M,D], keys [B,G,N,D], values [B,G,N,E], and then the masks; dst is
//          [B,H,M,E]. G divides H. A mask has the dimensions of the scores, or 1, where it is
//          broadcast; its first dimension may be any divisor of B: batch b takes index b modulo it.
//          N = 0 gives zeros.
// Types    f32 throughout.
// Arguments kArgMultipleSrc + i, kArgDst.
// Layouts  any; `any` dst is row-major. Generated code reads queries, keys and values by their
//          strides.
// Order    The bits of a row of dst do not depend on the other queries, heads or batches.
// Threads  immutable; see primitive.h.
// Wire     not offered: only models use it.
// Source   ONNX, "Attention"; Vaswani et al., "Attention Is All You Need", 2017, 3.2.
#ifndef ENGINE_PRIMITIVES_ATTENTION_ATTENTION_H_
#define ENGINE_PRIMITIVES_ATTENTION_ATTENTION_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct AttentionDesc {
  static constexpr int kQueries = 0, kKeys = 1, kValues = 2, kFirstMask = 3;  // of srcs

  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
  float scale = 1;
  bool causal = false;
};
TILEWIRE_FIELDS(AttentionDesc, srcs, dst, scale, causal);

//   kInvalidArgument  fewer than three sources, shapes that do not fit each other
TILEWIRE_PRIMITIVE_FUNCTIONS(Attention);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ATTENTION_ATTENTION_H_
