// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of convert.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_

#include "engine/primitives/convert/convert.h"

namespace tilewire::convert {

TILEWIRE_ROW(ConvertDesc, Dense);

TILEWIRE_ROW(ConvertDesc, Reference);

}  // namespace tilewire::convert

#endif  // ENGINE_PRIMITIVES_CONVERT_IMPLEMENTATIONS_H_
