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
// Arguments kArgSrc, kArgSrc1, kArgDst.
// Wire      all but prelu, which only models use.
// Layouts   any; dst may be `any`: the layout of src0. Post-ops: eltwise and sum.
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
};
TILEWIRE_FIELDS(BinaryDesc, algorithm, src0, src1, dst);

//   kInvalidArgument  dst is not of src0's shape, or src1 cannot be broadcast to it
TILEWIRE_PRIMITIVE_FUNCTIONS(Binary);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_BINARY_BINARY_H_
