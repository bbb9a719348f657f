// SPDX-License-Identifier: Apache-2.0
//
// Reduction along any set of dimensions: those in which dst has size 1 and src another. With x the
// elements of src that fall on one of dst and n their number,
//
//   max, min             the largest and smallest, NaN if any is
//   sum, mul, mean       sum x, product x, (sum x) / n
//   norm_lp_max          max(sum |x|^p, eps)^(1/p)      norm_lp_power_p_max  max(sum |x|^p, eps)
//   norm_lp_sum          (sum |x|^p + eps)^(1/p)        norm_lp_power_p_sum  sum |x|^p + eps
//
// Over no elements the sum is 0, the product 1, max -infinity, min infinity and mean NaN.
//
// Backward data, with y = dst and dy = diff_dst:
//
//   sum, mean            dy, dy / n
//   mul                  dy times the product of the other elements
//   max, min             dy to the elements that are y, shared evenly
//   norm_lp_...          dy times the derivative of the formula: 0 where eps takes the place of the
//                        sum, and where the norm is 0
//
// Arguments kArgSrc, kArgDst; backward kArgSrc, kArgDiffDst (both read), kArgDiffSrc. dst is then a
//          shape without a tensor.
// Shapes   src of rank 1 to 12, dst src's dims with some of them 1. Not in place.
// Layouts  any; dst and diff_dst may be `any`: the layout of src; diff_src, too.
// Source   oneDNN, "Reduction".
#ifndef ENGINE_PRIMITIVES_REDUCTION_REDUCTION_H_
#define ENGINE_PRIMITIVES_REDUCTION_REDUCTION_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class ReductionAlgorithm : uint8_t {
  kMax = 0,
  kMin,
  kSum,
  kMul,
  kMean,
  kNormLpMax,
  kNormLpSum,
  kNormLpPowerPMax,
  kNormLpPowerPSum,
};
constexpr int kReductionAlgorithmCount = 9;
absl::string_view AlgorithmName(ReductionAlgorithm algorithm);  // "max"

struct ReductionDesc {
  ReductionAlgorithm algorithm = ReductionAlgorithm::kSum;
  MemoryDesc src, dst;
  float p = 2, eps = 0;  // of the norms: p >= 1
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(ReductionDesc, algorithm, src, dst, p, eps, prop_kind, diff_src, diff_dst);

//   kInvalidArgument  dims of dst that are neither src's nor 1, p or eps that do not fit
TILEWIRE_PRIMITIVE_FUNCTIONS(Reduction);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_REDUCTION_REDUCTION_H_
