// SPDX-License-Identifier: Apache-2.0
//
// Matrix product, plain or batched:
//
//   dst[b,m,n] = postops(bias[b,m,n] + sum_k src[b,m,k] * weights[b,k,n])
//
// and backward, of f32 and without bias, each summed over what was broadcast:
//
//   backward_data     diff_src[b,m,k] = postops(sum_n diff_dst[b,m,n] * weights[b,k,n])
//   backward_weights  diff_weights[b,k,n] = postops(sum_m src[b,m,k] * diff_dst[b,m,n])
//
// weighted_gradients.h says what the fields of a descriptor are then, and which post-ops there are.
//
// Shapes   src [...,M,K], weights [...,K,N], dst [...,M,N] and bias (or the zero descriptor) of one
//          rank, 2 or more. A dimension of src or weights before the last two may be 1 where dst's
//          is not, and any dimension of bias: it is broadcast. K = 0 gives the bias.
// Types    f32; or all of f64, or of one type of integers of 16 bits and more, whose sums wrap
//          around, without bias and post-ops; or 8-bit integers, u8 or s8 each, to f32, s32, u8 or
//          s8, without bias:
//
//            dst[b,m,n] = postops(scale * sum_k (src[b,m,k] - src_zero_point) *
//                                               (weights[b,k,n] - weights_zero_point))
//
//          These sums are modulo 2^32, and so exact up to 33025 products. `scale` is the one output
//          scale; a zero point of dst is a post-op (linear). s32 without scale and post-ops are the
//          sums themselves; otherwise they become f32 first. With both ranges, which hold the
//          scale and the zero point of either side, both u8, at run time, these zero points and
//          the product of these scales, times `scale`, take the place of the known ones.
// Layouts  any; `any` is row-major. Post-ops: eltwise and sum.
// Order    Products are added in an order of k that does not depend on M, N and the batch; for
//          training in more and shorter chains, where that costs nothing, which round less. So are
//          the sums over n and m of gradients: rows of diff_src do not depend on M and the batch,
//          diff_weights of a batch that is cut have other bits.
// Source   oneDNN, "Matrix Multiplication"; Goto & van de Geijn, "Anatomy of High-Performance
//          Matrix Multiplication", ACM TOMS 34(3), 2008.
#ifndef ENGINE_PRIMITIVES_MATMUL_MATMUL_H_
#define ENGINE_PRIMITIVES_MATMUL_MATMUL_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct MatmulDesc {
  MemoryDesc src, weights, bias, dst;
  int32_t src_zero_point = 0, weights_zero_point = 0;  // of 8-bit integers
  // [2] each, of quantization_range.h; or the zero descriptors.
  MemoryDesc range = {}, weights_range = {};
  PropKind prop_kind = PropKind::kForwardInference;
};
TILEWIRE_FIELDS(MatmulDesc, src, weights, bias, dst, src_zero_point, weights_zero_point, range,
                weights_range, prop_kind);

//   kInvalidArgument  shapes that do not fit each other, a zero point that its type does not hold
TILEWIRE_PRIMITIVE_FUNCTIONS(Matmul);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_MATMUL_MATMUL_H_
