// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_

#include "engine/primitives/integer_sum/integer_sum.h"

namespace tilewire::integer_sum {

TILEWIRE_ROW(IntegerSumDesc, Dense);

TILEWIRE_CREATE(IntegerSumDesc, DenseLoop);

TILEWIRE_ROW(IntegerSumDesc, Reference);

}  // namespace tilewire::integer_sum

#endif  // ENGINE_PRIMITIVES_INTEGER_SUM_IMPLEMENTATIONS_H_
