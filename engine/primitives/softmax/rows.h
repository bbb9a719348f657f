// SPDX-License-Identifier: Apache-2.0
//
// Dense tensors whose axis is the innermost dimension in memory, by generated code: what avx512_f32 and
// avx2_f32 share. Three walks over a row, each vector by vector with several sums at once: the
// maximum, the exponentials and their sum, the scaling. How a row is cut depends on its length
// alone.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_ROWS_H_
#define ENGINE_PRIMITIVES_SOFTMAX_ROWS_H_

#include <memory>

#include "engine/primitives/softmax/softmax.h"

namespace tilewire::softmax {

// Of what ResolveDenseF32() returned, for the vectors of `isa` (kAvx2 or kAvx512).
absl::StatusOr<std::unique_ptr<Primitive>> CreateRows(const SoftmaxDesc& desc,
                                                      const Attributes& attributes,
                                                      const ImplementationFacts& facts);

}  // namespace tilewire::softmax

#endif  // ENGINE_PRIMITIVES_SOFTMAX_ROWS_H_
