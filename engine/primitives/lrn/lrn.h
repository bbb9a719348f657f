// SPDX-License-Identifier: Apache-2.0
//
// Local response normalization:
//
//   dst[x] = src[x] * (k + alpha / summands * sum of src[y]^2 over y near x)^-beta
//
// across channels: y are the channels within (local_size - 1) / 2 of x's at the same pixel, and
// summands = local_size; within a channel: the pixels within (local_size - 1) / 2 of x along every
// spatial dimension, and summands = local_size^(spatial dimensions). What lies outside src counts
// as 0. An even local_size therefore sums over one less, as in MKL-DNN.
//
// Backward data, with u[x] the sum in parentheses, dy = diff_dst and y near x as above:
//
//   diff_src[x] = dy[x] u[x]^-beta
//                 - 2 alpha beta / summands * src[x] * sum of dy[y] src[y] u[y]^(-beta - 1) over y
//
// Arguments kArgSrc, kArgDst; backward kArgSrc, kArgDiffDst (both read), kArgDiffSrc; dst is then
//          the zero descriptor.
// Shapes   src and dst [N,C,...]; within a channel 1 to 3 spatial dimensions. Not in place.
// Layouts  any; dst and the gradients may be `any`: the layout of src.
// Source   tests/engine/rows.txt P09; Krizhevsky et al., "ImageNet classification with deep
//          convolutional neural networks", NIPS 2012, 3.3.
#ifndef ENGINE_PRIMITIVES_LRN_LRN_H_
#define ENGINE_PRIMITIVES_LRN_LRN_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class LrnAlgorithm : uint8_t { kAcrossChannels = 0, kWithinChannel };
absl::string_view AlgorithmName(LrnAlgorithm algorithm);  // "across_channels"

struct LrnDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  LrnAlgorithm algorithm = LrnAlgorithm::kAcrossChannels;
  MemoryDesc src, dst;
  int64_t local_size = 5;
  float alpha = 1e-4f, beta = 0.75f, k = 1;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(LrnDesc, prop_kind, algorithm, src, dst, local_size, alpha, beta, k, diff_src,
                diff_dst);

//   kInvalidArgument  shapes that differ or have no such dimension, a local_size outside
//                     [1, 2^20], a parameter that is not finite
TILEWIRE_PRIMITIVE_FUNCTIONS(Lrn);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_LRN_LRN_H_
