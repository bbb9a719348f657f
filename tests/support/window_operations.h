// SPDX-License-Identifier: Apache-2.0
//
// The same as loop_operations.h, of operations that look up or slide over what is computed.
#ifndef TESTS_SUPPORT_WINDOW_OPERATIONS_H_
#define TESTS_SUPPORT_WINDOW_OPERATIONS_H_

#include <cmath>
#include <vector>

#include "engine/graph/network.h"
#include "engine/memory/index_walk.h"
#include "tests/support/loop_operations.h"

namespace tilewire::testing {

template <typename Elements>
void DoGather(const graph::IndexedGather& gather, Shaped<Elements> src, Shaped<Elements> indices,
              Elements* dst) {
  const size_t axis = gather.axis;
  int64_t outer = 1, inner = 1;
  for (size_t d = 0; d < src.dims.size(); ++d) (d < axis ? outer : inner) *= src.dims[d];
  inner /= src.dims[axis];
  int64_t n = 0;
  for (int64_t o = 0; o < outer; ++o) {
    for (const double index : indices.elements) {
      const int64_t at = static_cast<int64_t>(index) + (index <= -1 ? src.dims[axis] : 0);
      for (int64_t i = 0; i < inner; ++i)
        (*dst)[n++] = src.elements[(o * src.dims[axis] + at) * inner + i];
    }
  }
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_WINDOW_OPERATIONS_H_
