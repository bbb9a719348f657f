// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_

#include "engine/primitives/top_k/top_k.h"

namespace tilewire::top_k {

TILEWIRE_ROW(TopKDesc, PartialSort);

TILEWIRE_ROW(TopKDesc, Reference);

}  // namespace tilewire::top_k

#endif  // ENGINE_PRIMITIVES_TOP_K_IMPLEMENTATIONS_H_
