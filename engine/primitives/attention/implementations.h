// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_ATTENTION_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_ATTENTION_IMPLEMENTATIONS_H_

#include "engine/primitives/attention/attention.h"

namespace tilewire::attention {

// Generated code, block by block: see block_plan.h. Takes plain layouts whose dst has elements of a
// row next to each other.
TILEWIRE_ROW(AttentionDesc, Blocks);

TILEWIRE_ROW(AttentionDesc, Reference);

// The index of a mask's element in the scores of `index` = [b,h,m,n].
Dims MaskIndex(const Dims& mask, const Dims& index);

}  // namespace tilewire::attention

#endif  // ENGINE_PRIMITIVES_ATTENTION_IMPLEMENTATIONS_H_
