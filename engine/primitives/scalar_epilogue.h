// SPDX-License-Identifier: Apache-2.0
//
// The end of every result in the references: what accumulator_epilogue.h generates for vectors, for
// one value. Pure; thread-safe.
#ifndef ENGINE_PRIMITIVES_SCALAR_EPILOGUE_H_
#define ENGINE_PRIMITIVES_SCALAR_EPILOGUE_H_

#include "engine/primitives/attributes.h"

namespace tilewire {

// The chain applied to `value`; `before` is what the destination held.
float ApplyPostOps(const PostOps& post_ops, float value, float before);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SCALAR_EPILOGUE_H_
