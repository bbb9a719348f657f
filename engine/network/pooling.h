// SPDX-License-Identifier: Apache-2.0
//
// Operations of a network (network.h) that slide a window over the spatial dimensions of a tensor
// and reduce what it shows. Shapes are in logical order [N, C, spatial...].
#ifndef ENGINE_NETWORK_POOLING_H_
#define ENGINE_NETWORK_POOLING_H_

#include "engine/memory/dims.h"

namespace tilewire::network {

// A maximum that saves places has a further result for its gradient alone, of s32 and dst's dims:
// where the maximum stands in its window, as the row-major number of the tap (the first of equals).
struct Pooling {
  enum class Algorithm { kMax, kAvgIncludePadding, kAvgExcludePadding } algorithm = Algorithm::kMax;
  Dims kernel, strides, padding_left,
      padding_right;  // a global pooling has the kernel of its input
  bool saves_places = false;
};
// The maximum of each window (the first of equals; NaN only if all are NaN), or its index in the
// whole source, -1 for a window without elements. Dilations count from 0.
struct MaxWindow {
  enum class Result {
    kElement,
    kIndex,            // in row-major order
    kColumnMajorIndex  // with the spatial dimensions in column-major order
  } result = Result::kElement;
  Dims kernel, strides, dilations, padding_left;
};

}  // namespace tilewire::network

#endif  // ENGINE_NETWORK_POOLING_H_
