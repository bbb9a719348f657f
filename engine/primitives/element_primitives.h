// SPDX-License-Identifier: Apache-2.0
//
// Primitives that are a generated function of the elements that their sources have at one index,
// by either of the frames in engine/kernels/elements. dst is the argument of `info` that is written
// (a gradient, backward), sources are the others in their order. What pads dst is computed with the
// rest, and is zeroed after it unless zeros `stay_zero`. `info` comes without the size of the code.
#ifndef ENGINE_PRIMITIVES_ELEMENT_PRIMITIVES_H_
#define ENGINE_PRIMITIVES_ELEMENT_PRIMITIVES_H_

#include <memory>

#include "engine/kernels/elements/dense_run.h"
#include "engine/kernels/elements/elementwise_kernel.h"
#include "engine/kernels/elements/elementwise_plan.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

// For tensors that lie alike and without gaps: the whole of them is one dense run.
std::unique_ptr<Primitive> MakeDensePrimitive(PrimitiveInfo info, bool stay_zero,
                                              std::unique_ptr<const DenseRunGenerator> generator);

// For tensors that `plan` walks over: dst and then the sources.
std::unique_ptr<Primitive> MakeElementwisePrimitive(
    PrimitiveInfo info, bool stay_zero, ElementwisePlan plan,
    std::unique_ptr<const ElementwiseGenerator> generator);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_ELEMENT_PRIMITIVES_H_
