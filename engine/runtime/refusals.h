// SPDX-License-Identifier: Apache-2.0
//
// Why a primitive's implementation was taken: what the better ones answered. Thread-safe.
#ifndef ENGINE_RUNTIME_REFUSALS_H_
#define ENGINE_RUNTIME_REFUSALS_H_

#include <string>

#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

// "pooling/avx2_f32: needs avx2; ...": one entry per better implementation in the primitive's
// table, all of which refused the descriptor. If no better implementation exists: "there is no
// other".
std::string RefusalsText(const Primitive& primitive);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_REFUSALS_H_
