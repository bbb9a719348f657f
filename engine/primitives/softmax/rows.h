// SPDX-License-Identifier: Apache-2.0
//
// Generated code for dense tensors whose axis is the innermost dimension in memory. Three walks
// over a row, each vector by vector with several sums at once: the maximum, the exponentials and
// their sum, the scaling. How a row is cut depends only on its length.
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
