// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_

#include "engine/primitives/gather/gather.h"

namespace tilewire::gather {

TILEWIRE_ROW(GatherDesc, SliceCopy);

// The gradient, of row-major tensors.
TILEWIRE_ROW(GatherDesc, SliceSum);

TILEWIRE_ROW(GatherDesc, Reference);

TILEWIRE_ROW(GatherDesc, ReferenceBackward);

// Backward.
PrimitiveInfo BackwardInfoOf(const Request<GatherDesc>& request);

}  // namespace tilewire::gather

#endif  // ENGINE_PRIMITIVES_GATHER_IMPLEMENTATIONS_H_
