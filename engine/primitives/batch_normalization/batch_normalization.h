// SPDX-License-Identifier: Apache-2.0
//
// Batch normalization:
//
//   dst[n,c,s] = scale[c] * (src[n,c,s] - mean[c]) / sqrt(variance[c] + epsilon) + shift[c]
//
// and max(that, 0) with `fuse_relu` or a relu post-op, of `fuse_relu` at most `relu_limit`. With
// `use_global_stats` mean and variance are arguments, otherwise they are those of src over n and s
// (the variance biased), which makes dst depend on the whole batch. Without `use_scale_shift` scale
// is 1 and shift 0. May run in place.
//
// With `addend`, of src's shape, its elements are added before relu: what a residual block ends
// with. dst may be its memory where it has the layout. Training alone takes one.
//
// Training without `use_global_stats` writes the mean and the variance that it finds. Those that a
// network keeps for inference are a weighted sum (sum.h) of them and of the kept ones. With
// `fuse_relu` training also saves which elements relu let through (those above 0 and below its
// limit), as the workspace: a bit for each. The bits of 16 channels at one pixel follow each other,
// then those of the next pixel, in row-major order of n and s, then those of the next 16 channels;
// bits of channels that do not exist are 0.
//
// Backward, with dy = diff_dst, 0 where relu did not let through, xh = (src - mean) / sqrt(variance
// + epsilon) and m the elements of a channel:
//
//   diff_shift = sum dy, diff_scale = sum dy xh    over n and s
//   diff_src = scale / sqrt(variance + epsilon) * (dy - diff_shift / m - xh diff_scale / m)
//
// and with `use_global_stats` the factor times dy. kBackward writes the gradients of scale and
// shift too, kBackwardData that of src alone. With `addend`, which is then the layout of its
// gradient and goes with `fuse_relu`, dy is written too, over diff_dst where that has the layout.
//
// Shapes    src and dst [N,C] to [N,C,D,H,W]; mean, variance [C]; scale and shift one tensor [2,C].
// Arguments kArgSrc, kArgSrc1 (addend), kArgMean, kArgVariance (training may write them),
//           kArgWeights (scale and shift), kArgDst, kArgWorkspace. Backward kArgSrc, kArgMean,
//           kArgVariance, kArgWeights, kArgWorkspace, kArgDiffDst (all read), kArgDiffSrc,
//           kArgDiffSrc1 (of the addend), kArgDiffWeights; dst is then the zero descriptor.
// Layouts   any; dst and the gradients may be `any`: the layout of src. Types: f32.
// Source    tests/engine/rows.txt P08, Q12; Ioffe and Szegedy, "Batch normalization", ICML 2015.
#ifndef ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_
#define ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_

#include <limits>

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
  MemoryDesc addend = {};
  float relu_limit = std::numeric_limits<float>::infinity();  // above 0
};
TILEWIRE_FIELDS(BatchNormalizationDesc, prop_kind, src, dst, epsilon, use_global_stats,
                use_scale_shift, fuse_relu, diff_src, diff_dst, workspace, addend, relu_limit);

//   kInvalidArgument  tensors differ in shape or have no channels, epsilon is not finite, a
//                     workspace of another problem, an addend without training or, backward,
//                     without `fuse_relu`, a limit that is not above 0
TILEWIRE_PRIMITIVE_FUNCTIONS(BatchNormalization);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BATCH_NORMALIZATION_BATCH_NORMALIZATION_H_
