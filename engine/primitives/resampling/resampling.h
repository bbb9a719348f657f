// SPDX-License-Identifier: Apache-2.0
//
// Resampling of the spatial dimensions to another size. Along each of them, output o of O
// corresponds to
//
//   s = (o + 1/2) I / O - 1/2
//
// of the input's I elements (half-pixel centres, as in oneDNN):
//
//   nearest  dst[o] = src[round(s)], halves away from zero
//   linear   dst[o] = (1 - w) src[i] + w src[min(i + 1, I - 1)], s clamped to [0, I - 1],
//            i = floor(s), w = s - i; the product of the weights of all spatial dimensions
//
// Backward data: diff_src[i] = sum of the weights that outputs have for i, times their diff_dst.
//
// Arguments kArgSrc, kArgDst; backward kArgDiffDst (read), kArgDiffSrc, in the layouts of the
//          fields dst and src.
// Shapes   src [N,C,(D,(H,))W], dst the same N and C and any spatial sizes. Not in place.
// Layouts  any; dst may be `any`: the layout of src; backward src, too: that of dst.
// Source   oneDNN, "Resampling".
#ifndef ENGINE_PRIMITIVES_RESAMPLING_RESAMPLING_H_
#define ENGINE_PRIMITIVES_RESAMPLING_RESAMPLING_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class ResamplingAlgorithm : uint8_t { kNearest = 0, kLinear };
absl::string_view AlgorithmName(ResamplingAlgorithm algorithm);  // "nearest"

struct ResamplingDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  ResamplingAlgorithm algorithm = ResamplingAlgorithm::kNearest;
  MemoryDesc src, dst;
};
TILEWIRE_FIELDS(ResamplingDesc, prop_kind, algorithm, src, dst);

//   kInvalidArgument  ranks outside 3 to 5 or that differ, another N or C, an empty src under a
//                     dst that is not
TILEWIRE_PRIMITIVE_FUNCTIONS(Resampling);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_RESAMPLING_RESAMPLING_H_
