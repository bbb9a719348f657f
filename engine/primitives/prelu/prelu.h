// SPDX-License-Identifier: Apache-2.0
//
// Relu with slopes that are learned (parametric relu), forward and backward:
//
//   dst[i] = postops(x < 0 ? x a : x)          with x = src[i], and a the weight that i falls on
//
//   backward       diff_src[i] = x > 0 ? dy : a dy, with dy = diff_dst[i]
//                  diff_weights[j] = sum over i that fall on j of (x > 0 ? 0 : x dy)
//   backward_data  diff_src alone
//
// Shapes    weights have src's rank, and along every dimension src's size or 1: then all elements
//           along it share the slope. [1,C,1,1] is a slope per channel.
// Types     f32.
// Layouts   any. Weights may be `any`, too, and are in the layout of src then, which generated code
//           wants; diff_weights has the layout of weights. dst and the other gradients may be
//           `any`: the layout of src. May run in place.
// Arguments kArgSrc, kArgWeights, kArgDst; backward kArgSrc, kArgWeights, kArgDiffDst (all read),
//           kArgDiffSrc, kArgDiffWeights. dst is then the zero descriptor.
// Post-ops  eltwise and sum, forward.
// Order     sums are in double; their order depends on the descriptor and the instruction set,
//           never on the number of threads.
// Threads   immutable; see primitive.h.
// Source    He et al., "Delving deep into rectifiers", ICCV'15; ONNX, PRelu.
#ifndef ENGINE_PRIMITIVES_PRELU_PRELU_H_
#define ENGINE_PRIMITIVES_PRELU_PRELU_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct PreluDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, weights, dst;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(PreluDesc, prop_kind, src, weights, dst, diff_src, diff_dst);

//   kInvalidArgument  dst is not of src's shape, or weights cannot be broadcast to it
TILEWIRE_PRIMITIVE_FUNCTIONS(Prelu);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_PRELU_PRELU_H_
