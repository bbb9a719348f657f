// SPDX-License-Identifier: Apache-2.0
//
// How much a described primitive computes and holds, before anything is created. Pure functions.
#ifndef SERVICE_WIRE_OPERATION_COUNT_H_
#define SERVICE_WIRE_OPERATION_COUNT_H_

#include <cstdint>

#include "engine/primitive_engine.h"

namespace tilewire::service {

// Multiply-additions of convolutions and products, comparisons of pooling, elements read or written
// of the others, as the definition counts them. Exact below 2^53, which is beyond every bound.
double DescribedOperations(const OpDesc& desc);

// The operations of the reference, where no other row takes the primitive: as above, but for a
// gather's gradient, of which each element looks through all indices.
double ReferenceOperations(const OpDesc& desc);

// Bytes of all tensors of the descriptor, at least (`any` and strides of 0 count as dense);
// saturates.
int64_t DescribedBytes(const OpDesc& desc);

}  // namespace tilewire::service

#endif  // SERVICE_WIRE_OPERATION_COUNT_H_
