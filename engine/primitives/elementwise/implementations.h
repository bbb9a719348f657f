// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of elementwise.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_

#include "engine/primitives/elementwise/elementwise.h"

namespace tilewire::elementwise {

TILEWIRE_ROW(ElementwiseDesc, Rows);

TILEWIRE_ROW(ElementwiseDesc, Reference);

}  // namespace tilewire::elementwise

#endif  // ENGINE_PRIMITIVES_ELEMENTWISE_IMPLEMENTATIONS_H_
