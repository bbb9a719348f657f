// SPDX-License-Identifier: Apache-2.0
//
// Sum of tensors of one shape and type:
//
//   dst = sum_i scales[i] * srcs[i]
//
// added in the order of i, in f32, with one rounding per product and per sum. An integer dst is
// rounded to nearest even and saturated, and NaN becomes 0. dst may be srcs[0].
//
// Arguments kArgMultipleSrc + i, kArgDst.
// Layouts   any; dst may be `any`: the layout of srcs[0].
// Source    tests/engine/rows.txt P11.
#ifndef ENGINE_PRIMITIVES_SUM_SUM_H_
#define ENGINE_PRIMITIVES_SUM_SUM_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"

namespace tilewire {

struct SumDesc {
  std::vector<float> scales;  // one per source
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
};
TILEWIRE_FIELDS(SumDesc, scales, srcs, dst);

//   kInvalidArgument  no source, shapes or types that differ, another number of scales
TILEWIRE_PRIMITIVE_FUNCTIONS(Sum);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_SUM_SUM_H_
