// SPDX-License-Identifier: Apache-2.0
//
// Softmax along one axis, and its logarithm:
//
//   softmax      dst = e^(src - max) / sum e^(src - max)
//   logsoftmax   dst = src - max - log(sum e^(src - max))
//
// with sum and max over the axis. May run in place. Backward data, where y is dst of forward:
//
//   softmax      diff_src = y (diff_dst - sum diff_dst y)
//   logsoftmax   diff_src = diff_dst - e^y sum diff_dst
//
// Arguments kArgSrc, kArgDst; backward kArgDst, kArgDiffDst (both read), kArgDiffSrc; src is then
//           the zero descriptor.
//
// Layouts  any; dst may be `any`: the layout of src; gradients, too: that of dst. Generated code
//          runs where the tensor is dense.
// Source   tests/engine/rows.txt P10.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_
#define ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

enum class SoftmaxAlgorithm : uint8_t { kSoftmax = 0, kLogSoftmax };
absl::string_view AlgorithmName(SoftmaxAlgorithm algorithm);  // "softmax"

struct SoftmaxDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, dst;
  int axis = 1;
  SoftmaxAlgorithm algorithm = SoftmaxAlgorithm::kSoftmax;
  MemoryDesc diff_src = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(SoftmaxDesc, prop_kind, src, dst, axis, algorithm, diff_src, diff_dst);

//   kInvalidArgument  an axis outside the rank, shapes that differ, src backward
TILEWIRE_PRIMITIVE_FUNCTIONS(Softmax);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_
