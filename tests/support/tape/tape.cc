// SPDX-License-Identifier: Apache-2.0
#include "tests/support/tape/tape.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

namespace tilewire::testing {

template <typename T>
int Tape<T>::Leaf(const Dims& dims, std::vector<T> x) {
  const int id = New(dims);
  nodes_[id].x = std::move(x);
  return id;
}

template <typename T>
int Tape<T>::New(Dims dims) {
  const auto count = static_cast<size_t>(*ElementCount(dims));
  nodes_.push_back({std::move(dims), std::vector<T>(count, 0), std::vector<T>(count, 0)});
  return static_cast<int>(nodes_.size()) - 1;
}

namespace {

// Products of a row of pixels with one weight. Places: of the first pixel in dst and in src, and of
// the weight.
struct RowOfProducts {
  int64_t dst, src, weight, count;
};

template <typename Visit>
void ForEachRow(const Dims& src, const Dims& weights, const Dims& dst, int64_t pad, int64_t stride,
                const Visit& visit) {
  const int64_t kernel = weights[2], channels = src[1];
  for (int64_t n = 0; n < dst[0]; ++n) {
    for (int64_t o = 0; o < dst[1]; ++o) {
      for (int64_t c = 0; c < channels; ++c) {
        for (int64_t ky = 0; ky < kernel; ++ky) {
          for (int64_t kx = 0; kx < kernel; ++kx) {
            const int64_t w = ((o * channels + c) * kernel + ky) * kernel + kx;
            for (int64_t y = 0; y < dst[2]; ++y) {
              const int64_t sy = y * stride + ky - pad;
              if (sy < 0 || sy >= src[2]) continue;
              const int64_t d = ((n * dst[1] + o) * dst[2] + y) * dst[3];
              const int64_t s = ((n * channels + c) * src[2] + sy) * src[3];
              const int64_t begin = kx < pad ? (pad - kx + stride - 1) / stride : 0;
              const int64_t last = src[3] - 1 - kx + pad;
              const int64_t end = last < 0 ? 0 : std::min(dst[3], last / stride + 1);
              visit(
                  {d + begin, s + begin * stride + kx - pad, w, std::max<int64_t>(end - begin, 0)});
            }
          }
        }
      }
    }
  }
}

}  // namespace

template <typename T>
int Tape<T>::Convolution(int src, int weights, int bias, int64_t pad, int64_t stride) {
  const Dims in = nodes_[src].dims, kernel = nodes_[weights].dims;
  const auto out = [&](int d) { return (in[d] + 2 * pad - kernel[d]) / stride + 1; };
  const int dst = New({in[0], kernel[0], out(2), out(3)});
  const Dims dims = nodes_[dst].dims;
  const int64_t pixels = dims[2] * dims[3];
  const auto channel_of = [pixels, count = kernel[0]](int64_t d) { return d / pixels % count; };
  std::vector<T>& y = nodes_[dst].x;
  for (size_t d = 0; bias >= 0 && d < y.size(); ++d) y[d] = nodes_[bias].x[channel_of(d)];
  ForEachRow(in, kernel, dims, pad, stride, [&](const RowOfProducts& row) {
    const T weight = nodes_[weights].x[row.weight], *x = nodes_[src].x.data() + row.src;
    T* const to = y.data() + row.dst;
    for (int64_t i = 0; i < row.count; ++i) to[i] += x[i * stride] * weight;
  });
  backward_.push_back([=, this] {
    Node &from = nodes_[src], &by = nodes_[weights];
    const std::vector<T>& dy = nodes_[dst].gradient;
    ForEachRow(in, kernel, dims, pad, stride, [&](const RowOfProducts& row) {
      const T weight = by.x[row.weight], *x = from.x.data() + row.src;
      const T* const of_row = dy.data() + row.dst;
      T *dx = from.gradient.data() + row.src, sum = 0;
      for (int64_t i = 0; i < row.count; ++i) {
        dx[i * stride] += of_row[i] * weight;
        sum += of_row[i] * x[i * stride];
      }
      by.gradient[row.weight] += sum;
    });
    for (size_t d = 0; bias >= 0 && d < dy.size(); ++d)
      nodes_[bias].gradient[channel_of(d)] += dy[d];
  });
  return dst;
}

template <typename T>
int Tape<T>::Product(int src, int weights, int bias) {
  const int64_t images = nodes_[src].dims[0], outputs = nodes_[weights].dims[0];
  const int64_t inputs = nodes_[weights].dims[1];
  const int dst = New({images, outputs});
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t o = 0; o < outputs; ++o) {
      T sum = bias >= 0 ? nodes_[bias].x[o] : 0;
      for (int64_t i = 0; i < inputs; ++i)
        sum += nodes_[src].x[n * inputs + i] * nodes_[weights].x[o * inputs + i];
      nodes_[dst].x[n * outputs + o] = sum;
    }
  }
  backward_.push_back([=, this] {
    Node &from = nodes_[src], &by = nodes_[weights];
    for (int64_t n = 0; n < images; ++n) {
      for (int64_t o = 0; o < outputs; ++o) {
        const T dy = nodes_[dst].gradient[n * outputs + o];
        if (bias >= 0) nodes_[bias].gradient[o] += dy;
        for (int64_t i = 0; i < inputs; ++i) {
          from.gradient[n * inputs + i] += dy * by.x[o * inputs + i];
          by.gradient[o * inputs + i] += dy * from.x[n * inputs + i];
        }
      }
    }
  });
  return dst;
}

template <typename T>
int Tape<T>::Relu(int src) {
  const int dst = New(nodes_[src].dims);
  for (size_t i = 0; i < nodes_[src].x.size(); ++i)
    nodes_[dst].x[i] = std::max<T>(nodes_[src].x[i], 0);
  backward_.push_back([=, this] {
    for (size_t i = 0; i < nodes_[src].x.size(); ++i)
      nodes_[src].gradient[i] += nodes_[src].x[i] > 0 ? nodes_[dst].gradient[i] : 0;
  });
  return dst;
}

template <typename T>
int Tape<T>::Add(int a, int b) {
  const int dst = New(nodes_[a].dims);
  for (size_t i = 0; i < nodes_[a].x.size(); ++i)
    nodes_[dst].x[i] = nodes_[a].x[i] + nodes_[b].x[i];
  backward_.push_back([=, this] {
    for (const int src : {a, b}) {
      for (size_t i = 0; i < nodes_[src].x.size(); ++i)
        nodes_[src].gradient[i] += nodes_[dst].gradient[i];
    }
  });
  return dst;
}

template <typename T>
int Tape<T>::Concat(int a, int b) {
  Dims dims = nodes_[a].dims;
  dims[1] += nodes_[b].dims[1];
  const int dst = New(dims);
  // Calls visit(src, place in it, place in dst).
  const auto for_each = [=, this](const auto& visit) {
    const int64_t whole = *ElementCount(dims) / dims[0];
    int64_t begin = 0;
    for (const int src : {a, b}) {
      const int64_t part = static_cast<int64_t>(nodes_[src].x.size()) / dims[0];
      for (int64_t n = 0; n < dims[0]; ++n) {
        for (int64_t i = 0; i < part; ++i) visit(src, n * part + i, n * whole + begin + i);
      }
      begin += part;
    }
  };
  for_each([&](int src, int64_t s, int64_t d) { nodes_[dst].x[d] = nodes_[src].x[s]; });
  backward_.push_back([=, this] {
    for_each([this, dst](int src, int64_t s, int64_t d) {
      nodes_[src].gradient[s] += nodes_[dst].gradient[d];
    });
  });
  return dst;
}

template <typename T>
void Tape<T>::ForEachTap(int src, int dst, const TapeWindow& window,
                         const std::function<void(int64_t, int64_t)>& visit) const {
  const Dims &in = nodes_[src].dims, &out = nodes_[dst].dims;
  for (int64_t plane = 0; plane < in[0] * in[1]; ++plane) {
    for (int64_t at = 0; at < out[2] * out[3]; ++at) {
      const int64_t top = at / out[3] * window.stride - window.pad;
      const int64_t left = at % out[3] * window.stride - window.pad;
      for (int64_t y = std::max<int64_t>(top, 0); y < std::min(top + window.kernel, in[2]); ++y) {
        for (int64_t x = std::max<int64_t>(left, 0); x < std::min(left + window.kernel, in[3]); ++x)
          visit(plane * out[2] * out[3] + at, (plane * in[2] + y) * in[3] + x);
      }
    }
  }
}

template <typename T>
int Tape<T>::AveragePool(int src, const TapeWindow& window) {
  const Dims in = nodes_[src].dims;
  const int dst = New({in[0], in[1], window.CountIn(in[2]), window.CountIn(in[3])});
  std::vector<T> count(nodes_[dst].x.size(), 0);
  ForEachTap(src, dst, window, [&](int64_t d, int64_t s) {
    nodes_[dst].x[d] += nodes_[src].x[s];
    count[d] += 1;
  });
  for (size_t d = 0; d < count.size(); ++d) nodes_[dst].x[d] /= count[d];
  backward_.push_back([=, this] {
    ForEachTap(src, dst, window, [&](int64_t d, int64_t s) {
      nodes_[src].gradient[s] += nodes_[dst].gradient[d] / count[d];
    });
  });
  return dst;
}

template <typename T>
int Tape<T>::MaxPool(int src, const TapeWindow& window) {
  const Dims in = nodes_[src].dims;
  const int dst = New({in[0], in[1], window.CountIn(in[2]), window.CountIn(in[3])});
  std::vector<int64_t> places(nodes_[dst].x.size(), -1);
  ForEachTap(src, dst, window, [&](int64_t d, int64_t s) {
    if (places[d] < 0 || nodes_[src].x[s] > nodes_[src].x[places[d]]) places[d] = s;
  });
  for (size_t d = 0; d < places.size(); ++d) nodes_[dst].x[d] = nodes_[src].x[places[d]];
  backward_.push_back([=, this] {
    for (size_t d = 0; d < places.size(); ++d)
      nodes_[src].gradient[places[d]] += nodes_[dst].gradient[d];
  });
  return dst;
}

template <typename T>
int Tape<T>::Normalize(int src, int scale, int shift, std::vector<T>* mean,
                       std::vector<T>* variance) {
  const Dims dims = nodes_[src].dims;
  const int dst = New(dims);
  const int64_t channels = dims[1], pixels = dims[2] * dims[3];
  const T count = static_cast<T>(dims[0] * pixels);
  const auto channel_of = [=](size_t i) { return static_cast<int64_t>(i) / pixels % channels; };
  const std::vector<T>& x = nodes_[src].x;
  mean->assign(channels, 0);
  variance->assign(channels, 0);
  for (size_t i = 0; i < x.size(); ++i) (*mean)[channel_of(i)] += x[i] / count;
  for (size_t i = 0; i < x.size(); ++i) {
    const T off = x[i] - (*mean)[channel_of(i)];
    (*variance)[channel_of(i)] += off * off / count;
  }
  const auto normal = std::make_shared<std::vector<T>>(x.size());
  std::vector<T> roots(channels);
  for (int64_t c = 0; c < channels; ++c) roots[c] = std::sqrt((*variance)[c] + kEpsilon);
  for (size_t i = 0; i < x.size(); ++i) {
    const int64_t c = channel_of(i);
    (*normal)[i] = (x[i] - (*mean)[c]) / roots[c];
    nodes_[dst].x[i] = nodes_[scale].x[c] * (*normal)[i] + nodes_[shift].x[c];
  }
  backward_.push_back([=, this] {
    const std::vector<T>& dy = nodes_[dst].gradient;
    std::vector<T> sum(channels, 0), sum_normal(channels, 0);
    for (size_t i = 0; i < dy.size(); ++i) {
      sum[channel_of(i)] += dy[i];
      sum_normal[channel_of(i)] += dy[i] * (*normal)[i];
    }
    for (size_t i = 0; i < dy.size(); ++i) {
      const int64_t c = channel_of(i);
      nodes_[src].gradient[i] += nodes_[scale].x[c] / roots[c] *
                                 (dy[i] - sum[c] / count - (*normal)[i] * sum_normal[c] / count);
    }
    for (int64_t c = 0; c < channels; ++c) {
      nodes_[shift].gradient[c] += sum[c];
      nodes_[scale].gradient[c] += sum_normal[c];
    }
  });
  return dst;
}

template <typename T>
double Tape<T>::CrossEntropy(int scores, const std::vector<int64_t>& labels) {
  Node& node = nodes_[scores];
  const int64_t images = node.dims[0], classes = node.dims[1];
  T loss = 0;
  for (int64_t n = 0; n < images; ++n) {
    const T* const row = &node.x[n * classes];
    const T largest = *std::max_element(row, row + classes);
    T sum = 0;
    for (int64_t c = 0; c < classes; ++c) sum += std::exp(row[c] - largest);
    loss += (std::log(sum) + largest - row[labels[n]]) / static_cast<T>(images);
    for (int64_t c = 0; c < classes; ++c) {
      const T share = std::exp(row[c] - largest) / sum;
      node.gradient[n * classes + c] = (share - (c == labels[n] ? 1 : 0)) / static_cast<T>(images);
    }
  }
  for (auto step = backward_.rbegin(); step != backward_.rend(); ++step) (*step)();
  return loss;
}

template class Tape<float>;
template class Tape<double>;

}  // namespace tilewire::testing
