// SPDX-License-Identifier: Apache-2.0
//
// Why a primitive is the reference one: what each faster implementation answered. Thread-safe.
#ifndef ENGINE_RUNTIME_REFERENCE_REASON_H_
#define ENGINE_RUNTIME_REFERENCE_REASON_H_

#include <string>

#include "engine/primitives/primitive.h"

namespace tilewire::runtime {

bool IsReference(const Primitive& primitive);

// "pooling/avx2_f32: needs avx2; ...", one entry a row of the primitive's table; "there is no
// other" where the table has the reference only.
std::string WhyReference(const Primitive& primitive);

}  // namespace tilewire::runtime

#endif  // ENGINE_RUNTIME_REFERENCE_REASON_H_
