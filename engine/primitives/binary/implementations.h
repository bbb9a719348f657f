// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_

#include "engine/primitives/binary/binary.h"

namespace tilewire::binary {

// Binary functions by generated code (elementwise_kernel.h), shared by avx512_f32 and avx2_f32.
// Takes every layout whose elements all three tensors walk with constant steps: one layout on all
// sides, plain or blocked, with src1 broadcast along any dimensions.
TILEWIRE_ROW(BinaryDesc, Rows);

TILEWIRE_ROW(BinaryDesc, Reference);

// Backward in such layouts, shared by avx512_f32_backward and avx2_f32_backward.
TILEWIRE_ROW(BinaryDesc, RowsBackward);

TILEWIRE_ROW(BinaryDesc, ReferenceBackward);

PrimitiveInfo BackwardInfoOf(const Request<BinaryDesc>& request);

}  // namespace tilewire::binary

#endif  // ENGINE_PRIMITIVES_BINARY_IMPLEMENTATIONS_H_
