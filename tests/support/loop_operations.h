// SPDX-License-Identifier: Apache-2.0
//
// What operations of a network that have no primitive mean, as plain loops over row-major tensors
// of float or double.
#ifndef TESTS_SUPPORT_LOOP_OPERATIONS_H_
#define TESTS_SUPPORT_LOOP_OPERATIONS_H_

#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/graph/elementwise.h"
#include "engine/graph/network.h"
#include "engine/memory/index_walk.h"

namespace tilewire::testing {

// A tensor and its dims; `elements` is a std::vector of numbers.
template <typename Elements>
struct Shaped {
  const Elements& elements;
  const Dims& dims;

  // With missing leading dimensions, and with index 0 along dimensions of size 1.
  typename Elements::value_type AtBroadcast(const Dims& index) const {
    int64_t offset = 0;
    for (size_t d = 0; d < dims.size(); ++d)
      offset = offset * dims[d] + (dims[d] == 1 ? 0 : index[index.size() - dims.size() + d]);
    return elements[offset];
  }
};

template <typename Elements>
void DoSelect(const graph::Select& select, Shaped<Elements> src, const Dims& dims, Elements* dst) {
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    Dims from = index;
    bool fill = false;
    for (size_t d = 0; d < dims.size(); ++d) {
      int64_t rest = index[d];
      for (const graph::IndexRun& run : select.from[d]) {
        if (rest >= 0 && rest < run.count) {
          from[d] = run.start + rest * run.step;
          fill = fill || run.start < 0;
        }
        rest -= run.count;
      }
    }
    (*dst)[n++] = fill ? select.fill : src.AtBroadcast(from);
  });
}

template <typename Elements>
void DoElementwise(const graph::Elementwise& elementwise, const std::vector<Shaped<Elements>>& srcs,
                   const Dims& dims, Elements* dst) {
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    float x[3];
    for (size_t s = 0; s < srcs.size(); ++s) x[s] = static_cast<float>(srcs[s].AtBroadcast(index));
    (*dst)[n++] = graph::Evaluate(elementwise, x);
  });
}

template <typename Elements>
void DoReduce(const graph::Reduce& reduce, Shaped<Elements> src, const Dims& dims, Elements* dst) {
  using Function = graph::Reduce::Function;
  std::vector<std::vector<double>> parts(dst->size());
  int64_t n = 0;
  ForEachIndex(src.dims, [&](const Dims& index) {
    int64_t to = 0;
    for (size_t d = 0; d < dims.size(); ++d) to = to * dims[d] + (dims[d] == 1 ? 0 : index[d]);
    parts[to].push_back(src.elements[n++]);
  });
  for (size_t i = 0; i < parts.size(); ++i) {
    double sum = 0, product = 1, absolute = 0, squares = 0;
    for (double x : parts[i]) {
      sum += x;
      product *= x;
      absolute += std::abs(x);
      squares += x * x;
    }
    const double results[] = {sum,
                              sum / static_cast<double>(parts[i].size()),
                              *std::max_element(parts[i].begin(), parts[i].end()),
                              *std::min_element(parts[i].begin(), parts[i].end()),
                              product,
                              absolute,
                              squares};
    static_assert(static_cast<int>(Function::kSumOfSquares) == 6);
    (*dst)[i] = results[static_cast<int>(reduce.function)];
  }
}

template <typename Elements>
void DoInterpolate(const graph::Interpolate& interpolate, Shaped<Elements> src, const Dims& dims,
                   Elements* dst) {
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    double sum = 0;
    Dims from = index;
    for (int64_t t = 0; t < interpolate.taps; ++t) {
      const int64_t entry = index[interpolate.axis] * interpolate.taps + t;
      from[interpolate.axis] = interpolate.indices[entry];
      sum += interpolate.weights[entry] * src.AtBroadcast(from);
    }
    (*dst)[n++] = sum;
  });
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_LOOP_OPERATIONS_H_
