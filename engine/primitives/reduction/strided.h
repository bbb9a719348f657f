// SPDX-License-Identifier: Apache-2.0
//
// Reduction over src's strided loops, shared by avx512_f32 and avx2_f32. Takes layouts of src and
// dst that walk with constant steps, the innermost step being one element, and at most two reduced
// loops beside it; that is every set of dimensions of the common layouts but a few of blocked ones.
#ifndef ENGINE_PRIMITIVES_REDUCTION_STRIDED_H_
#define ENGINE_PRIMITIVES_REDUCTION_STRIDED_H_

#include "engine/primitives/reduction/reduction.h"

namespace tilewire::reduction {

absl::StatusOr<std::unique_ptr<Primitive>> CreateStrided(const ReductionDesc& desc,
                                                         const Attributes& attributes,
                                                         const ImplementationFacts& facts);

}  // namespace tilewire::reduction

#endif  // ENGINE_PRIMITIVES_REDUCTION_STRIDED_H_
