// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/elementwise/elementwise.h"

namespace tilewire::elementwise {

using functions::Function;

// Generated code, shared by avx512_vectors and avx2_vectors, for f32 and integers of all sizes, in
// any layouts whose elements follow each other, or are broadcast, along the rows of dst. Functions
// of more than a few instructions are left to Rows: exponentials, powers, remainders of f32,
// quotients of integers of 64 bits, and all of f64.
TILEWIRE_ROW(ElementwiseDesc, Vectors);

// Plain loops over rows, for every type and layout.
TILEWIRE_ROW(ElementwiseDesc, Rows);

TILEWIRE_ROW(ElementwiseDesc, Reference);

}  // namespace tilewire::elementwise

#endif  // ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
