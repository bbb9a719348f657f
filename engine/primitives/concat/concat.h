// SPDX-License-Identifier: Apache-2.0
//
// Concatenation along one axis, in the order of the sources.
//
// Arguments kArgMultipleSrc + i, kArgDst.
// Layouts   any; dst may be `any`: the layout of srcs[0].
// Source    tests/engine/rows.txt P12.
#ifndef ENGINE_PRIMITIVES_CONCAT_CONCAT_H_
#define ENGINE_PRIMITIVES_CONCAT_CONCAT_H_

#include <vector>

#include "engine/primitives/fields.h"
#include "engine/primitives/implementation.h"
#include "engine/primitives/primitive.h"

namespace tilewire {

struct ConcatDesc {
  int axis = 1;
  std::vector<MemoryDesc> srcs;
  MemoryDesc dst;
};
TILEWIRE_FIELDS(ConcatDesc, axis, srcs, dst);

//   kInvalidArgument  no source, an axis outside the rank, sizes off the axis that differ, types
//                     that differ
TILEWIRE_PRIMITIVE_FUNCTIONS(Concat);

}  // namespace tilewire

#endif  // ENGINE_PRIMITIVES_CONCAT_CONCAT_H_
