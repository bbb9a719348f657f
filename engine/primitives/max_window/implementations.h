// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_

#include "engine/primitives/max_window/max_window.h"

namespace tilewire::max_window {

TILEWIRE_ROW(MaxWindowDesc, PlainRows);

TILEWIRE_ROW(MaxWindowDesc, Reference);

}  // namespace tilewire::max_window

#endif  // ENGINE_PRIMITIVES_MAX_WINDOW_IMPLEMENTATIONS_H_
