// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/sum/sum.h"

namespace tilewire::sum {

// Sum of tensors that lie densely in one layout, shared by avx512_dense and avx2_dense. The
// generated code is a loop over whole vectors, which are f32 in registers whatever the type; the
// last count % lanes elements go through vectors on the stack. The padded tail is zeroed
// afterwards, because 0 times a negative scale is -0, and times an infinite one NaN.
TILEWIRE_ROW(SumDesc, Dense);

TILEWIRE_ROW(SumDesc, Reference);

}  // namespace tilewire::sum

#endif  // ENGINE_PRIMITIVES_SUM_IMPLEMENTATIONS_H_
