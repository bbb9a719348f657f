// SPDX-License-Identifier: Apache-2.0
//
// How much a primitive computes. Pure function; thread-safe.
#ifndef ENGINE_PRIMITIVES_OPERATION_COUNT_H_
#define ENGINE_PRIMITIVES_OPERATION_COUNT_H_

#include <cstdint>

#include "engine/primitives/primitive.h"

namespace tilewire {

// Multiplications and additions of a convolution, deconvolution, inner product or matrix product,
// and of the products of a recurrent network, as its definition counts them (products with padding
// included, whatever the algorithm saves); 0 for other primitives. Exact below 2^53.
int64_t OperationCount(const Primitive& primitive);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_OPERATION_COUNT_H_
