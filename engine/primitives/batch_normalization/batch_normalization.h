// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization:
//
//   dst[n,c,s] = scale[c] * (src[n,c,s] - mean[c]) / sqrt(variance[c] + epsilon) + shift[c]
//
// and max(that, 0) with `fuse_relu` or a relu post-op. With `use_global_stats` mean and variance
// are arguments, otherwise they are those of src over n and s (the variance biased), which makes
// dst depend on the whole batch. Without `use_scale_shift` scale is 1 and shift 0. May run in
// place.
//
// Training without `use_global_stats` writes the mean and the variance that it finds. Those that a
// network keeps for inference are a weighted sum (sum.h) of them and of the kept ones. With
// `fuse_relu` training also saves which elements relu zeroed, as the workspace: a bit for each, for
// each channel the bits of its elements in row-major order, from a whole byte on.
//
// Backward, with dy = diff_dst, 0 where relu zeroed, xh = (src - mean) / sqrt(variance + epsilon)
// and m the elements of a channel:
//
//   diff_shift = sum dy, diff_scale = sum dy xh    over n and s
//   diff_src = scale / sqrt(variance + epsilon) * (dy - diff_shift / m - xh diff_scale / m)
//
// and with `use_global_stats` the factor times dy. kBackward writes the gradients of scale and
// shift too, kBackwardData that of src alone.
//
// Shapes    src and dst [N,C] to [N,C,D,H,W]; mean, variance [C]; scale and shift one tensor [2,C].
// Arguments kArgSrc, kArgMean, kArgVariance (training may write them), kArgWeights (scale and
//           shift), kArgDst, kArgWorkspace. Backward kArgSrc, kArgMean, kArgVariance, kArgWeights,
//           kArgWorkspace, kArgDiffDst (all read), kArgDiffSrc, kArgDiffWeights; dst is then the
//           zero descriptor.
// Layouts   any; dst and the gradients may be `any`: the layout of src. Types: f32.
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
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
  MemoryDesc workspace = {};                // backward: that of the forward primitive
};
TILEWIRE_FIELDS(BatchNormalizationDesc, prop_kind, src, dst, epsilon, use_global_stats,
                use_scale_shift, fuse_relu, diff_src, diff_dst, workspace);

//   kInvalidArgument  tensors differ in shape or have no channels, epsilon is not finite, a
//                     workspace of another problem
TILEWIRE_PRIMITIVE_FUNCTIONS(BatchNormalization);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_
