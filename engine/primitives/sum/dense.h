// SPDX-License-Identifier: Apache-2.0
//
// Sum of tensors that lie densely in one layout, shared by avx512_dense and avx2_dense. The
// generated code is a loop over whole vectors, which are f32 in registers whatever the type; the
// last count % lanes elements go through vectors on the stack. The padded tail is zeroed
// afterwards, because 0 times a negative scale is -0, and times an infinite one NaN.
#ifndef ENGINE_PRIMITIVES_SUM_DENSE_H_
#define ENGINE_PRIMITIVES_SUM_DENSE_H_

#include "engine/jit/vector_unit.h"
#include "engine/primitives/sum/sum.h"

namespace tilewire::sum {

// `lanes`: 16 for AVX-512, 8 for AVX2.
absl::StatusOr<std::unique_ptr<Primitive>> CreateDense(const SumDesc& desc,
                                                       const Attributes& attributes,
                                                       const ImplementationFacts& facts);

}  // namespace tilewire::sum

#endif  // ENGINE_PRIMITIVES_SUM_DENSE_H_
