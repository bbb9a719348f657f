// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "tests/support/oracle/operations.h"

namespace tilewire::testing {
namespace {

Dims Spatial(const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); }

int64_t OffsetOf(const Dims& dims, const Dims& index) {
  int64_t offset = 0;
  for (size_t d = 0; d < dims.size(); ++d) offset = offset * dims[d] + index[d];
  return offset;
}

// A window over the spatial dimensions; dilations count from 0.
struct Window {
  const Dims &kernel, &strides, &dilations, &padding_left;
};

// An element of the window that lies inside the source: its offsets in a plane of the source, and
// in the window.
struct Tap {
  int64_t src, kernel;
};

// The taps of the window at the spatial indices of `position`, in row-major order.
std::vector<Tap> TapsAt(const Window& window, const Dims& src, const Dims& position) {
  std::vector<Tap> taps;
  Dims at(window.kernel.size(), 0);
  ForEachIndex(window.kernel, [&](const Dims& k) {
    for (size_t d = 0; d < k.size(); ++d) {
      at[d] = position[d] * window.strides[d] + k[d] * (window.dilations[d] + 1) -
              window.padding_left[d];
      if (at[d] < 0 || at[d] >= src[d]) return;
    }
    taps.push_back({OffsetOf(src, at), OffsetOf(window.kernel, k)});
  });
  return taps;
}

// Calls visit(image, channel, pixel, taps) for each element of dst [N, C, spatial...].
template <typename Visit>
void OverWindows(const Window& window, const Dims& src, const Dims& dst, Visit visit) {
  int64_t pixel = 0;
  ForEachIndex(Spatial(dst), [&](const Dims& position) {
    const std::vector<Tap> taps = TapsAt(window, Spatial(src), position);
    for (int64_t n = 0; n < dst[0]; ++n) {
      for (int64_t c = 0; c < dst[1]; ++c) visit(n, c, pixel, taps);
    }
    ++pixel;
  });
}

// The effective weights, row-major: rows of the first dimension.
Elements Effective(const network::Weights& weights) {
  const network::HeldFloats held = network::LoadElements(weights).value();
  const int64_t rows = weights.dims[0], columns = static_cast<int64_t>(held.values.size()) / rows;
  Elements effective;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const double stored =
          held.values[weights.transposed ? column * rows + row : row * columns + column];
      effective.push_back(weights.scale.empty() ? stored : stored * weights.scale[row]);
    }
  }
  return effective;
}

// The bias is empty, or has one element per channel of dst.
Elements Convolve(const Shaped& src, const Shaped& weights, const Elements& bias, int64_t groups,
                  const Dims& strides, const Dims& dilations, const Dims& padding_left,
                  const Dims& dst_dims) {
  const Dims kernel = Spatial(weights.dims);
  const int64_t src_plane = *ElementCount(Spatial(src.dims)), taps_count = *ElementCount(kernel);
  const int64_t dst_plane = *ElementCount(Spatial(dst_dims)), inputs = weights.dims[1];
  Elements dst(*ElementCount(dst_dims));
  OverWindows({kernel, strides, dilations, padding_left}, src.dims, dst_dims,
              [&](int64_t n, int64_t o, int64_t pixel, const std::vector<Tap>& taps) {
                const int64_t first = o / (weights.dims[0] / groups) * inputs;
                const double* image = &src.elements[(n * src.dims[1] + first) * src_plane];
                const double* row = &weights.elements[o * inputs * taps_count];
                double sum = bias.empty() ? 0 : bias[o];
                for (int64_t i = 0; i < inputs; ++i) {
                  for (const Tap& tap : taps)
                    sum += image[i * src_plane + tap.src] * row[i * taps_count + tap.kernel];
                }
                dst[(n * dst_dims[1] + o) * dst_plane + pixel] = sum;
              });
  return dst;
}

// The same place in a plane of these dims, counted with the first dimension innermost.
int64_t ColumnMajor(const Dims& spatial, int64_t offset) {
  int64_t place = 0;
  for (size_t d = spatial.size(), stride = *ElementCount(spatial); d-- > 0;) {
    stride /= spatial[d];
    place += offset % spatial[d] * static_cast<int64_t>(stride);
    offset /= spatial[d];
  }
  return place;
}

}  // namespace

Elements Compute(const network::Convolution& c, const Operands& operands) {
  const Elements weights = Effective(c.weights), bias(c.bias.begin(), c.bias.end());
  return Convolve(operands.srcs[0], {weights, c.weights.dims}, bias, c.groups, c.strides,
                  c.dilations, c.padding_left, operands.dst);
}

Elements Compute(const network::ComputedConvolution& c, const Operands& operands) {
  const Elements bias = operands.srcs.size() > 2 ? operands.srcs[2].elements : Elements();
  return Convolve(operands.srcs[0], operands.srcs[1], bias, c.groups, c.strides, c.dilations,
                  c.padding_left, operands.dst);
}

Elements Compute(const network::DynamicConvolution& c, const Operands& operands) {
  const Elements& range = operands.srcs[1].elements;
  Elements numbers = Compute(network::DynamicQuantize{}, operands);
  for (double& number : numbers) number = (number - range[1]) * range[0];
  const Elements weights = Effective(c.weights), bias(c.bias.begin(), c.bias.end());
  return Convolve({numbers, operands.srcs[0].dims}, {weights, c.weights.dims}, bias, c.groups,
                  c.strides, c.dilations, c.padding_left, operands.dst);
}

Elements Compute(const network::DynamicInnerProduct& product, const Operands& operands) {
  const Elements& range = operands.srcs[1].elements;
  const Elements numbers = Compute(network::DynamicQuantize{}, operands);
  const Elements weights = Effective(product.weights);
  const int64_t inputs = product.weights.dims[1];
  int64_t row = -1;
  return ForEach(operands.dst, [&](const Dims& index) {
    const int64_t o = index.back();
    if (o == 0) ++row;
    double sum = product.bias.empty() ? 0 : product.bias[o];
    for (int64_t i = 0; i < inputs; ++i)
      sum += (numbers[row * inputs + i] - range[1]) * range[0] * weights[o * inputs + i];
    return sum;
  });
}

// The taps of an output are those whose place in src, times the stride, is the output's.
Elements Compute(const network::Deconvolution& d, const Operands& operands) {
  const Shaped& src = operands.srcs[0];
  const Elements weights = Effective(d.weights);
  const Dims& w = d.weights.dims;
  const Dims kernel = Spatial(w), plane = Spatial(src.dims);
  return ForEach(operands.dst, [&](const Dims& index) {
    const int64_t first = index[1] / (w[0] / d.groups) * w[1];
    double sum = d.bias.empty() ? 0 : d.bias[index[1]];
    Dims at(kernel.size(), 0);
    ForEachIndex(kernel, [&](const Dims& k) {
      for (size_t i = 0; i < k.size(); ++i) {
        const int64_t place = index[i + 2] + d.padding_left[i] - k[i] * (d.dilations[i] + 1);
        if (place < 0 || place % d.strides[i] != 0 || place / d.strides[i] >= plane[i]) return;
        at[i] = place / d.strides[i];
      }
      for (int64_t c = 0; c < w[1]; ++c) {
        sum += src.elements[(index[0] * src.dims[1] + first + c) * *ElementCount(plane) +
                            OffsetOf(plane, at)] *
               weights[(index[1] * w[1] + c) * *ElementCount(kernel) + OffsetOf(kernel, k)];
      }
    });
    return sum;
  });
}

Elements Compute(const network::InnerProduct& product, const Operands& operands) {
  const Elements &src = operands.srcs[0].elements, weights = Effective(product.weights);
  const int64_t inputs = product.weights.dims[1];
  return ForEach(operands.dst, [&](const Dims& index) {
    double sum = product.bias.empty() ? 0 : product.bias[index[1]];
    for (int64_t i = 0; i < inputs; ++i)
      sum += src[index[0] * inputs + i] * weights[index[1] * inputs + i];
    return sum;
  });
}

Elements Compute(const network::Matmul&, const Operands& operands) {
  const Shaped &a = operands.srcs[0], &b = operands.srcs[1];
  const size_t rank = operands.dst.size();
  return ForEach(operands.dst, [&](const Dims& index) {
    Dims left = index, right = index;
    double sum = 0;
    for (int64_t k = 0; k < a.dims[rank - 1]; ++k) {
      left[rank - 1] = right[rank - 2] = k;
      sum += a.AtBroadcast(left) * b.AtBroadcast(right);
    }
    return sum;
  });
}

namespace {

// Sum over k of a[..,row,k] * b[..,k,column].
double ProductAt(const Shaped& a, const Shaped& b, Dims left, Dims right) {
  const size_t rank = left.size();
  double sum = 0;
  for (int64_t k = 0; k < a.dims[rank - 1]; ++k) {
    left[rank - 1] = right[rank - 2] = k;
    sum += a.AtBroadcast(left) * b.AtBroadcast(right);
  }
  return sum;
}

// The sum of all masks at the score `index`, which may have any rank.
double MaskAt(const Operands& operands, const Dims& index) {
  double sum = 0;
  for (size_t i = 3; i < operands.srcs.size(); ++i) {
    const Shaped& mask = operands.srcs[i];
    Dims at(mask.dims.size(), 0);  // by dimensions from the last on
    for (size_t back = 1; back <= std::min(at.size(), index.size()); ++back)
      at[at.size() - back] = index[index.size() - back] % mask.dims[at.size() - back];
    sum += mask.AtBroadcast(at);
  }
  return sum;
}

}  // namespace

Elements Compute(const network::Attention& attention, const Operands& operands) {
  const Shaped &queries = operands.srcs[0], &keys = operands.srcs[1], &values = operands.srcs[2];
  const size_t rank = operands.dst.size();
  std::vector<double> shares(keys.dims[rank - 1]);
  return ForEach(operands.dst, [&](const Dims& index) {
    double highest = -INFINITY, total = 0, sum = 0;
    for (size_t n = 0; n < shares.size(); ++n) {
      Dims score = index;
      score[rank - 1] = static_cast<int64_t>(n);
      shares[n] =
          attention.scale * ProductAt(queries, keys, score, score) + MaskAt(operands, score);
      highest = std::max(highest, shares[n]);
    }
    for (double& share : shares) total += share = std::exp(share - highest);
    Dims value = index;
    for (size_t n = 0; n < shares.size(); ++n) {
      value[rank - 2] = static_cast<int64_t>(n);
      sum += shares[n] / total * values.AtBroadcast(value);
    }
    return sum;
  });
}

Elements Compute(const network::Pooling& pooling, const Operands& operands) {
  const Shaped& src = operands.srcs[0];
  const bool is_max = pooling.algorithm == network::Pooling::Algorithm::kMax;
  const bool all_count = pooling.algorithm == network::Pooling::Algorithm::kAvgIncludePadding;
  const int64_t src_plane = *ElementCount(Spatial(src.dims));
  const int64_t dst_plane = *ElementCount(Spatial(operands.dst));
  const double window_size = *ElementCount(pooling.kernel);
  Elements dst(*ElementCount(operands.dst));
  const Dims dense(pooling.kernel.size(), 0);
  OverWindows({pooling.kernel, pooling.strides, dense, pooling.padding_left}, src.dims,
              operands.dst, [&](int64_t n, int64_t c, int64_t pixel, const std::vector<Tap>& taps) {
                const int64_t plane = n * src.dims[1] + c;
                double best = -INFINITY, sum = 0;
                for (const Tap& tap : taps) {
                  const double x = src.elements[plane * src_plane + tap.src];
                  best = std::max(best, x);
                  sum += x;
                }
                const double count = all_count ? window_size : static_cast<double>(taps.size());
                dst[plane * dst_plane + pixel] = is_max ? best : sum / count;
              });
  return dst;
}

Elements Compute(const network::MaxWindow& window, const Operands& operands) {
  using Result = network::MaxWindow::Result;
  const Shaped& src = operands.srcs[0];
  const Dims spatial = Spatial(src.dims);
  const int64_t src_plane = *ElementCount(spatial);
  const int64_t dst_plane = *ElementCount(Spatial(operands.dst));
  Elements dst(*ElementCount(operands.dst));
  OverWindows({window.kernel, window.strides, window.dilations, window.padding_left}, src.dims,
              operands.dst, [&](int64_t n, int64_t c, int64_t pixel, const std::vector<Tap>& taps) {
                const int64_t plane = n * src.dims[1] + c;
                double best = -INFINITY;
                int64_t place = -1;
                for (const Tap& tap : taps) {
                  const double x = src.elements[plane * src_plane + tap.src];
                  if (place >= 0 && !(x > best) && !std::isnan(best)) continue;
                  if (place >= 0 && std::isnan(x)) continue;
                  best = x;
                  place = plane * src_plane + (window.result == Result::kColumnMajorIndex
                                                   ? ColumnMajor(spatial, tap.src)
                                                   : tap.src);
                }
                dst[plane * dst_plane + pixel] =
                    window.result == Result::kElement ? best : static_cast<double>(place);
              });
  return dst;
}

}  // namespace tilewire::testing
