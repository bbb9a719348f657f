// SPDX-License-Identifier: Apache-2.0
//
// Softmax along one axis:
//
//   dst = e^(src - max) / sum e^(src - max)
//
// with sum and max over the axis. May run in place.
//
// Layouts  any; dst may be `any`: the layout of src. Generated code runs where the tensor is dense.
// Source   tests/engine/rows.txt P10.
#ifndef ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_
#define ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct SoftmaxDesc {
  PropKind prop_kind = PropKind::kForwardInference;
  MemoryDesc src, dst;
  int axis = 1;
};
TILEWIRE_FIELDS(SoftmaxDesc, prop_kind, src, dst, axis);

//   kInvalidArgument  an axis outside the rank, shapes that differ
TILEWIRE_PRIMITIVE_FUNCTIONS(Softmax);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SOFTMAX_SOFTMAX_H_
