// SPDX-License-Identifier: Apache-2.0
//
// How much a step computes. Pure function.
#ifndef ENGINE_RUNTIME_STEP_WORK_H_
#define ENGINE_RUNTIME_STEP_WORK_H_

#include <cstdint>

#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// Multiplications and additions of a convolution, deconvolution, inner product or matrix product,
// as its definition counts them (padding included, whatever the algorithm saves); 0 for others.
int64_t OperationsOf(const Primitive& primitive);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_STEP_WORK_H_
