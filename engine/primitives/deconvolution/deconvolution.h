// SPDX-License-Identifier: Apache-2.0
//
// Deconvolution (transposed convolution). Forward, every element of src is spread over dst by the
// kernel. As a sum for one element of dst:
//
//   dst[n,oc,o] = postops(bias[oc] + sum over ic in oc's group, taps k and positions i with
//                         o = i*stride + k*(dilation+1) - padding_left of
//                         src[n,ic,i] * weights[oc,ic,k])
//
// for o, i, k over 1 to 3 spatial dimensions. Backward:
//
//   backward_data     diff_src[n,ic,i] = postops(sum over oc of ic's group, k of
//                     diff_dst[n, oc, i*stride + k*(dilation+1) - padding_left] *
//                     weights[oc,ic,k])
//   backward_weights  diff_weights[oc,ic,k] = postops(sum over n, i of src[n,ic,i] *
//                     diff_dst[n, oc, i*stride + k*(dilation+1) - padding_left])
//                     diff_bias[oc] = postops(sum over n, o of diff_dst[n,oc,o])
//
// Shapes   src [N,C,(D,(H,))W], weights [O,I,(D,(H,))W], or [G,O/G,I/G,...] with groups, bias [O]
//          or the zero descriptor, dst [N,O,...] with size
//          (in - 1)*stride + (k-1)*(dilation+1) + 1 - pl - pr.
//          Dilation counts from 0: 0 is dense.
// Backward f32; weighted_gradients.h says what the fields of a descriptor are then, and which
//          post-ops there are.
// Layouts  Any tensor may be `any`: the primitive chooses. Post-ops: eltwise and sum.
// Order    The order of addition depends only on the per-image descriptor and the instruction set.
//          Fast rows add images of gradients of weights in their order: a batch may be cut between
//          them, later parts added by `sum`, and gives the same bits.
// Source   tests/engine/rows.txt P04; Dumoulin and Visin, "A guide to convolution arithmetic for
//          deep learning", 2016, 4.
#ifndef ENGINE_PRIMITIVES_DECONVOLUTION_DECONVOLUTION_H_
#define ENGINE_PRIMITIVES_DECONVOLUTION_DECONVOLUTION_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct DeconvolutionDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, weights, bias, dst;
  Dims strides, dilations, padding_left, padding_right;  // one per spatial dimension
};
TILEWIRE_FIELDS(DeconvolutionDesc, prop_kind, src, weights, bias, dst, strides, dilations,
                padding_left, padding_right);

//   kInvalidArgument  shapes that do not fit each other; the message names the dimension
TILEWIRE_PRIMITIVE_FUNCTIONS(Deconvolution);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_DECONVOLUTION_DECONVOLUTION_H_
