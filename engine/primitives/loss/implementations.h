// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_LOSS_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_LOSS_IMPLEMENTATIONS_H_

#include "engine/primitives/loss/loss.h"

namespace tilewire::loss {

PrimitiveInfo InfoOf(const Request<LossDesc>& request);

// Tensors without gaps, image after image, whose classes lie side by side: row-major, or with the
// channels last.
TILEWIRE_ROW(LossDesc, Rows);

TILEWIRE_ROW(LossDesc, Reference);

}  // namespace tilewire::loss

#endif  // ENGINE_PRIMITIVES_LOSS_IMPLEMENTATIONS_H_
