// SPDX-License-Identifier: Apache-2.0
//
// Binary function of two tensors: dst[i] = postops(src0[i] op src1[i]) with op one of
//
//   add  x + y     sub  x - y     max  the larger, NaN if either is
//   mul  x * y     div  x / y     min  the smaller, NaN if either is
//   prelu  x < 0 ? x * y : x
//
// src1 has src0's rank, and along every dimension src0's size or 1: then it is broadcast, as one
// number for the tensor [1,1,1,1], a channel [1,C,1,1] or [N,C,1,1], a pixel [N,1,H,W], and so on.
// May run in place: dst may be src0, or src1 where nothing is broadcast.
//
// Backward data, with dy = diff_dst, summed for diff_src1 over what is broadcast:
//
//   add  dy, dy      mul  dy y, dy x            max, min  dy to the one that is taken, half each to
//   sub  dy, -dy     div  dy / y, -dy x / y^2             equals
//   prelu  x > 0 ? dy : dy y, x > 0 ? 0 : dy x
//
// Either of diff_src0 and diff_src1 may be the zero descriptor: it is not computed.
//
// Arguments kArgSrc, kArgSrc1, kArgDst; backward kArgSrc, kArgSrc1, kArgDiffDst (all read),
//           kArgDiffSrc, kArgDiffSrc1. dst is then a shape without a tensor.
// Wire      all but prelu, which is a primitive of its own there: prelu/prelu.h.
// Layouts   any; dst and the gradients may be `any`: the layouts of src0 and src1.
// Post-ops  eltwise and sum, forward.
// In place  diff_src0 may be the memory of diff_dst where their layouts are the same.
// Order     sums are in double and rounded once; their order depends on the descriptor and the
//           instruction set, never on the number of threads.
// Source    oneDNN, "Binary"; NaN as in NumPy.
#ifndef ENGINE_PRIMITIVES_BINARY_BINARY_H_
#define ENGINE_PRIMITIVES_BINARY_BINARY_H_

#include "engine/functions/function.h"
#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

using BinaryAlgorithm = functions::Function;  // from kAdd to kPRelu

constexpr bool IsBinaryAlgorithm(functions::Function function) {
  return function >= functions::Function::kAdd && function <= functions::Function::kPRelu;
}

struct BinaryDesc {
  BinaryAlgorithm algorithm = BinaryAlgorithm::kAdd;
  MemoryDesc src0, src1, dst;
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc diff_src0 = {}, diff_src1 = {}, diff_dst = {};  // backward
};
TILEWIRE_FIELDS(BinaryDesc, algorithm, src0, src1, dst, prop_kind, diff_src0, diff_src1, diff_dst);

//   kInvalidArgument  dst is not of src0's shape, or src1 cannot be broadcast to it
TILEWIRE_PRIMITIVE_FUNCTIONS(Binary);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BINARY_BINARY_H_
