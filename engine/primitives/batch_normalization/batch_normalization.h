// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization, forward inference:
//
//   dst[n,c,s] = scale[c] * (src[n,c,s] - mean[c]) / sqrt(variance[c] + epsilon) + shift[c]
//
// and max(that, 0) with `fuse_relu` or a relu post-op. With `use_global_stats` mean and variance
// are arguments, otherwise they are those of src over n and s (the variance biased), which makes
// dst depend on the whole batch. Without `use_scale_shift` scale is 1 and shift 0. May run in
// place.
//
// Shapes    src and dst [N,C] to [N,C,D,H,W]; mean, variance [C]; scale and shift one tensor [2,C].
// Arguments kArgSrc, kArgMean, kArgVariance, kArgWeights (scale and shift), kArgDst.
// Layouts   any; dst may be `any`: the layout of src.
// Source    tests/engine/rows.txt P08, Q12; Ioffe and Szegedy, "Batch normalization", ICML 2015.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct BatchNormalizationDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, dst;
  float epsilon = 1e-5f;
  bool use_global_stats = true, use_scale_shift = true, fuse_relu = false;
};
TILEWIRE_FIELDS(BatchNormalizationDesc, prop_kind, src, dst, epsilon, use_global_stats,
                use_scale_shift, fuse_relu);

//   kInvalidArgument  src and dst differ in shape or have no channels, epsilon is not finite
TILEWIRE_PRIMITIVE_FUNCTIONS(BatchNormalization);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_
