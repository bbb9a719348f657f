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
void DoGather(const graph::Gather& gather, Shaped<Elements> src, Shaped<Elements> indices,
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

template <typename Elements>
void DoComputedConvolution(const graph::ComputedConvolution& c,
                           const std::vector<Shaped<Elements>>& srcs, const Dims& dims,
                           Elements* dst) {
  const Dims& weights = srcs[1].dims;
  const Dims taps(weights.begin() + 1, weights.end());
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    double sum = srcs.size() > 2 ? srcs[2].elements[index[1]] : 0;
    ForEachIndex(taps, [&](const Dims& tap) {
      Dims at = index, weight = {index[1]};
      weight.insert(weight.end(), tap.begin(), tap.end());
      at[1] = index[1] / (weights[0] / c.groups) * weights[1] + tap[0];
      bool inside = true;
      for (size_t d = 2; d < at.size(); ++d) {
        at[d] = index[d] * c.strides[d - 2] + tap[d - 1] * (c.dilations[d - 2] + 1) -
                c.padding_left[d - 2];
        inside = inside && at[d] >= 0 && at[d] < srcs[0].dims[d];
      }
      if (inside) sum += static_cast<double>(srcs[0].AtBroadcast(at)) * srcs[1].AtBroadcast(weight);
    });
    (*dst)[n++] = sum;
  });
}

template <typename Elements>
void DoMaxWindow(const graph::MaxWindow& window, Shaped<Elements> src, const Dims& dims,
                 Elements* dst) {
  using Result = graph::MaxWindow::Result;
  const Dims& sizes = src.dims;
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    double best = -INFINITY, place = -1;
    ForEachIndex(window.kernel, [&](const Dims& tap) {
      Dims at = index;
      int64_t rows = index[0] * sizes[1] + index[1], columns = 0, stride = 1;
      for (size_t d = 2; d < at.size(); ++d) {
        at[d] = index[d] * window.strides[d - 2] + tap[d - 2] * (window.dilations[d - 2] + 1) -
                window.padding_left[d - 2];
        if (at[d] < 0 || at[d] >= sizes[d]) return;
        rows = rows * sizes[d] + at[d];
        columns += at[d] * stride;
        stride *= sizes[d];
      }
      if (place >= 0 && !(src.AtBroadcast(at) > best)) return;
      best = src.AtBroadcast(at);
      const int64_t plane = (index[0] * sizes[1] + index[1]) * stride;
      place = window.result == Result::kIndex ? rows : plane + columns;
    });
    (*dst)[n++] = window.result == Result::kElement ? best : place;
  });
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_WINDOW_OPERATIONS_H_
