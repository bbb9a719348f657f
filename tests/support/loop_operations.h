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
      for (const IndexRun& run : select.from[d]) {
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

template <typename Elements>
void DoGatherChannels(const graph::GatherChannels& gather,
                      const std::vector<Shaped<Elements>>& srcs, const Dims& dims, Elements* dst) {
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    Dims from = index;
    from[1] = gather.from[index[1]].channel;
    (*dst)[n++] = srcs[gather.from[index[1]].src].AtBroadcast(from);
  });
}

template <typename Elements>
void DoLrn(const graph::Lrn& lrn, Shaped<Elements> src, Elements* dst) {
  int64_t n = 0;
  ForEachIndex(src.dims, [&](const Dims& index) {
    double sum = 0;
    Dims near = index;
    for (near[1] = std::max<int64_t>(0, index[1] - lrn.size / 2);
         near[1] <= std::min(src.dims[1] - 1, index[1] + lrn.size / 2); ++near[1]) {
      sum += std::pow(static_cast<double>(src.AtBroadcast(near)), 2);
    }
    (*dst)[n] = src.elements[n] * std::pow(lrn.k + lrn.alpha / static_cast<double>(lrn.size) * sum,
                                           -static_cast<double>(lrn.beta));
    ++n;
  });
}

template <typename Elements>
void DoLayerNormalization(const graph::LayerNormalization& norm, Shaped<Elements> src,
                          Elements* dst) {
  const int64_t columns = src.dims.back();
  for (size_t row = 0; row < src.elements.size(); row += columns) {
    double mean = 0, variance = 0;
    for (int64_t c = 0; c < columns; ++c) mean += src.elements[row + c] / double(columns);
    for (int64_t c = 0; c < columns; ++c)
      variance += std::pow(src.elements[row + c] - mean, 2) / double(columns);
    for (int64_t c = 0; c < columns; ++c) {
      const double x = (src.elements[row + c] - mean) / std::sqrt(variance + norm.epsilon);
      (*dst)[row + c] = norm.scale.empty() ? x : x * norm.scale[c] + norm.shift[c];
    }
  }
}

template <typename Elements>
void DoMatmul(Shaped<Elements> a, Shaped<Elements> b, const Dims& dims, Elements* dst) {
  int64_t n = 0;
  const size_t rank = dims.size();
  ForEachIndex(dims, [&](const Dims& index) {
    Dims left = index, right = index;
    double sum = 0;
    for (int64_t k = 0; k < a.dims[rank - 1]; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += static_cast<double>(a.AtBroadcast(left)) * b.AtBroadcast(right);
    }
    (*dst)[n++] = sum;
  });
}

template <typename Elements>
void DoTopK(const graph::TopK& top, Shaped<Elements> src, const Dims& dims, Elements* dst) {
  int64_t n = 0;
  ForEachIndex(dims, [&](const Dims& index) {
    // The element before which exactly index[axis] others rank.
    for (int64_t i = 0; i < src.dims[top.axis]; ++i) {
      Dims at = index, other = index;
      at[top.axis] = i;
      const auto x = src.AtBroadcast(at);
      int64_t before = 0;
      for (other[top.axis] = 0; other[top.axis] < src.dims[top.axis]; ++other[top.axis]) {
        const auto y = src.AtBroadcast(other);
        const bool earlier = top.last_of_equals ? other[top.axis] > i : other[top.axis] < i;
        before += y == x ? earlier : (y > x) == top.largest;
      }
      if (before == index[top.axis]) (*dst)[n] = top.indices ? i : x;
    }
    ++n;
  });
}

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_LOOP_OPERATIONS_H_
