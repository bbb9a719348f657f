// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/eltwise/eltwise.h"

namespace tilewire::eltwise {

// Eltwise over dense memory, one layout on both sides, shared by avx512_dense and avx2_dense. The
// generated code is a loop over whole vectors, which are f32 in registers whatever the type; the
// last count % lanes elements go through a vector on the stack. Where f(0) is not 0 the padded tail
// is zeroed afterwards.
TILEWIRE_ROW(EltwiseDesc, Dense);

TILEWIRE_ROW(EltwiseDesc, Reference);

// Backward over dense memory, one layout for all tensors: generated code that computes the
// derivative of the functions that networks train with, from src or from dst, and multiplies.
TILEWIRE_ROW(EltwiseDesc, DenseBackward);

TILEWIRE_ROW(EltwiseDesc, ReferenceBackward);

// Backward: the tensor that is read beside the gradient, and whether it is dst.
inline bool ReadsResult(const EltwiseDesc& desc) { return desc.src.IsZero(); }
inline const MemoryDesc& SavedTensor(const EltwiseDesc& desc) {
  return ReadsResult(desc) ? desc.dst : desc.src;
}
PrimitiveInfo BackwardInfoOf(const Request<EltwiseDesc>& request);

}  // namespace tilewire::eltwise

#endif  // ENGINE_PRIMITIVES_ELTWISE_IMPLEMENTATIONS_H_
