// SPDX-License-Identifier: Apache-2.0
//
// The functions of the rows of table.cc; implementation.h says what they do.
#ifndef ENGINE_PRIMITIVES_SELECT_IMPLEMENTATIONS_H_
#define ENGINE_PRIMITIVES_SELECT_IMPLEMENTATIONS_H_

#include "engine/primitives/select/select.h"

namespace tilewire::select {

constexpr int64_t kFill = -1;  // the place of an element that is not in the source

// Where index i of dst comes from along dimension d, for every i; kFill for none.
std::vector<int64_t> SourceIndices(const SelectDesc& desc, int d);

TILEWIRE_ROW(SelectDesc, RunCopy);

TILEWIRE_ROW(SelectDesc, Reference);

}  // namespace tilewire::select

#endif  // ENGINE_PRIMITIVES_SELECT_IMPLEMENTATIONS_H_
