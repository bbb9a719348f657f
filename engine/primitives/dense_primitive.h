// SPDX-License-Identifier: Apache-2.0
//
// A primitive whose tensors lie alike and without gaps, so that the whole of it is one dense run
// (engine/kernels/elements/dense_run.h).
#ifndef ENGINE_PRIMITIVES_DENSE_PRIMITIVE_H_
#define ENGINE_PRIMITIVES_DENSE_PRIMITIVE_H_

#include <memory>

#include "engine/kernels/elements/dense_run.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// Around `generator`, a function of all sources of info.args, in their order, into dst. What pads
// dst is computed with the rest, and is zeroed after it unless zeros `stay_zero`.
std::unique_ptr<Primitive> MakeDensePrimitive(PrimitiveInfo info, bool stay_zero,
                                              std::unique_ptr<const DenseRunGenerator> generator);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_DENSE_PRIMITIVE_H_
