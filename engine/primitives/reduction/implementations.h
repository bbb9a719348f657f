// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_

#include "engine/primitives/reduction/reduction.h"

namespace tilewire::reduction {

// Reduction over src's strided loops, shared by avx512_f32 and avx2_f32. Takes layouts of src and
// dst that walk with constant steps, the innermost step being one element, and at most two reduced
// loops beside it; that is every set of dimensions of the common layouts but a few of blocked ones.
TILEWIRE_ROW(ReductionDesc, Strided);

// Plain loops over rows, any layout.
TILEWIRE_ROW(ReductionDesc, Rows);

// The gradients of sums and means in generated code, shared by avx512_f32_backward and
// avx2_f32_backward. Takes layouts of diff_src and diff_dst that walk with constant steps.
TILEWIRE_ROW(ReductionDesc, BroadcastBackward);

TILEWIRE_ROW(ReductionDesc, Reference);

TILEWIRE_ROW(ReductionDesc, ReferenceBackward);

// Backward, without code.
PrimitiveInfo BackwardInfoOf(const Request<ReductionDesc>& request);

// How many elements of src fall on one of dst.
int64_t ReducedCount(const ReductionDesc& desc);

// A call of generated code, and a row of a loop, cannot be stopped. Memory bounds how many elements
// they read, unless elements share it: a few bytes, at strides of 0, may stand for any number.
//   kUnimplemented  more than 2^26 elements that share memory
absl::Status RequireOwnMemory(const MemoryDesc& src);

inline bool IsNorm(ReductionAlgorithm algorithm) {
  return algorithm >= ReductionAlgorithm::kNormLpMax;
}
inline bool IsExtremum(ReductionAlgorithm algorithm) {
  return algorithm <= ReductionAlgorithm::kMin;
}
inline bool TakesRoot(ReductionAlgorithm algorithm) {
  return algorithm == ReductionAlgorithm::kNormLpMax || algorithm == ReductionAlgorithm::kNormLpSum;
}
inline bool AddsEps(ReductionAlgorithm algorithm) {
  return algorithm == ReductionAlgorithm::kNormLpSum ||
         algorithm == ReductionAlgorithm::kNormLpPowerPSum;
}
// The number that the first element is combined with.
float NeutralElement(ReductionAlgorithm algorithm);

}  // namespace tilewire::reduction

#endif  // ENGINE_PRIMITIVES_REDUCTION_IMPLEMENTATIONS_H_
