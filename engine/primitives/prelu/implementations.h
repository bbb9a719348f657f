// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_PRELU_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_PRELU_IMPLEMENTATIONS_H_

#include "engine/primitives/prelu/prelu.h"

namespace tilewire::prelu {

// Both ways, shared by avx512_f32, avx2_f32 and the rows of gradients: the binary function of src
// and weights, in the layouts that its generated code takes (binary/rows.cc).
TILEWIRE_ROW(PreluDesc, AsBinary);

TILEWIRE_ROW(PreluDesc, Reference);

TILEWIRE_ROW(PreluDesc, ReferenceBackward);

// The layout of weights: their own, or src's for `any`.
//   kUnimplemented  they are transformed and have no elements to read
absl::StatusOr<MemoryDesc> WeightsOf(const PreluDesc& desc);

// Forward and backward.
PrimitiveInfo InfoOfPrelu(const Request<PreluDesc>& request);

}  // namespace tilewire::prelu

#endif  // ENGINE_PRIMITIVES_PRELU_IMPLEMENTATIONS_H_
