// SPDX-License-Identifier: Apache-2.0
//
// Eltwise over dense memory, shared by avx512_dense and avx2_dense. The generated code is a loop
// over whole vectors, which are f32 in registers whatever the type; the last count % lanes elements
// go through a vector on the stack. Where f(0) is not 0 the padded tail is zeroed afterwards.
#ifndef ENGINE_PRIMITIVES_ELTWISE_DENSE_H_
#define ENGINE_PRIMITIVES_ELTWISE_DENSE_H_

#include "engine/primitives/eltwise/eltwise.h"

namespace tilewire::eltwise {

// Creates for the vectors of `isa` (kAvx2 or kAvx512).
absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const EltwiseDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

}  // namespace tilewire::eltwise

#endif  // ENGINE_PRIMITIVES_ELTWISE_DENSE_H_
