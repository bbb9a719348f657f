// SPDX-License-Identifier: Apache-2.0
//
// Layer normalization over the last dimension:
//
//   dst[r,c] = scale[c] * (src[r,c] - mean[r]) / sqrt(variance[r] + epsilon) + shift[c]
//
// with r all dimensions but the last, of size C. Mean and variance (biased) are those of the row,
// or with `use_global_stats` arguments. Without `use_scale_shift` scale is 1 and shift 0. May run
// in place.
//
// With `addend` and `sum`, which are the zero descriptor or have src's shape, src + addend, rounded
// once, is written to sum, and takes the place of src in the formula. sum may be the memory of src
// or addend where it has the layout, and dst that of src; sum and dst are different memory.
//
// Training without `use_global_stats` writes mean and variance of the rows. Backward, with dy =
// diff_dst, xh = (src - mean) / sqrt(variance + epsilon), g = scale dy and means over a row:
//
//   diff_src = (g - mean(g) - xh mean(g xh)) / sqrt(variance + epsilon)
//   diff_scale = sum dy xh, diff_shift = sum dy    over the rows
//
// and with `use_global_stats` g / sqrt(variance + epsilon). kBackward writes the gradients of scale
// and shift too, kBackwardData that of src alone. Neither training nor backward takes an addend.
//
// Shapes    src and dst of rank 2 to 5; mean and variance src's dims without the last, row-major;
//           scale and shift one tensor [2,C].
// Arguments kArgSrc, kArgSrc1 (addend), kArgMean, kArgVariance, kArgWeights (scale and shift),
//           kArgDst, kArgMultipleDst (sum). Backward kArgSrc, kArgMean, kArgVariance, kArgWeights,
//           kArgDiffDst (all read), kArgDiffSrc, kArgDiffWeights [2,C]; dst is then the zero
//           descriptor.
// Layouts   any; dst, sum and the gradients may be `any`: the layout of src.
// Source    oneDNN, "Layer Normalization"; Ba, Kiros and Hinton, "Layer normalization", 2016.
#ifndef ENGINE_PRIMITIVES_LAYER_NORMALIZATION_LAYER_NORMALIZATION_H_
#define ENGINE_PRIMITIVES_LAYER_NORMALIZATION_LAYER_NORMALIZATION_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct LayerNormalizationDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, dst;
  float epsilon = 1e-5f;
  bool use_global_stats = false, use_scale_shift = true;
  MemoryDesc addend, sum;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(LayerNormalizationDesc, prop_kind, src, dst, epsilon, use_global_stats,
                use_scale_shift, addend, sum, diff_src, diff_dst);

//   kInvalidArgument  tensors that differ in shape, a rank outside 2 to 5, epsilon is not finite,
//                     one of addend and sum without the other, or with `use_global_stats`
TILEWIRE_PRIMITIVE_FUNCTIONS(LayerNormalization);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_LAYER_NORMALIZATION_LAYER_NORMALIZATION_H_
