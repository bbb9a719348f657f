// SPDX-License-Identifier: Apache-2.0
#include "tests/support/oracle/gradients.h"

#include "engine/memory/index_walk.h"

namespace tilewire::testing {
namespace {

Dims SpatialDims(const Dims& dims) { return Dims(dims.begin() + 2, dims.end()); }

int64_t RowMajorPlace(const Dims& dims, const Dims& index) {
  int64_t place = 0;
  for (size_t d = 0; d < dims.size(); ++d) place = place * dims[d] + index[d];
  return place;
}

// Where a tap takes a pixel: pixel * stride + tap * (dilation + 1) - padding, if that is one of
// `to`'s.
bool Slide(const WindowLayer& layer, const Dims& pixel, const Dims& tap, const Dims& to, Dims* at) {
  for (size_t i = 0; i < pixel.size(); ++i) {
    (*at)[i] =
        pixel[i] * layer.strides[i] + tap[i] * (layer.dilations[i] + 1) - layer.padding_left[i];
    if ((*at)[i] < 0 || (*at)[i] >= to[i]) return false;
  }
  return true;
}

// Calls visit(pixel of `from`, pixel of `to`, tap) as row-major places for all that a window
// relates.
template <typename Visit>
void ForEachTap(const WindowLayer& layer, const Dims& from, const Dims& to, const Visit& visit) {
  Dims at(from.size(), 0);
  ForEachIndex(from, [&](const Dims& pixel) {
    ForEachIndex(layer.kernel, [&](const Dims& tap) {
      if (!Slide(layer, pixel, tap, to, &at)) return;
      visit(RowMajorPlace(from, pixel), RowMajorPlace(to, at), RowMajorPlace(layer.kernel, tap));
    });
  });
}

// Calls visit(image, input channel, output channel, place of their taps) for all that are related.
template <typename Visit>
void ForEachChannels(const WindowLayer& layer, const Visit& visit) {
  const int64_t inputs = layer.src[1] / layer.groups, outputs = layer.dst[1] / layer.groups;
  const int64_t taps = *ElementCount(layer.kernel);
  for (int64_t n = 0; n < layer.src[0]; ++n) {
    for (int64_t o = 0; o < layer.dst[1]; ++o) {
      for (int64_t i = 0; i < inputs; ++i)
        visit(n, o / outputs * inputs + i, o, (o * inputs + i) * taps);
    }
  }
}

struct TapPlaces {
  int64_t from, to, tap;
};

// `from` is src for a convolution's dst, and so on: the side whose pixels the stride multiplies.
Products WindowProducts(const WindowLayer& layer, bool strides_over_src) {
  return [layer, strides_over_src](const VisitProduct& visit) {
    const Dims src = SpatialDims(layer.src), dst = SpatialDims(layer.dst);
    const int64_t src_plane = *ElementCount(src), dst_plane = *ElementCount(dst);
    std::vector<TapPlaces> taps;
    ForEachTap(layer, strides_over_src ? dst : src, strides_over_src ? src : dst,
               [&](int64_t from, int64_t to, int64_t tap) {
                 taps.push_back({from, to, tap});
               });
    ForEachChannels(layer, [&](int64_t n, int64_t i, int64_t o, int64_t weights) {
      const int64_t in = (n * layer.src[1] + i) * src_plane;
      const int64_t out = (n * layer.dst[1] + o) * dst_plane;
      for (const auto& [from, to, tap] : taps) {
        visit({in + (strides_over_src ? to : from), weights + tap,
               out + (strides_over_src ? from : to)});
      }
    });
  };
}

}  // namespace

Products ConvolutionProducts(const WindowLayer& layer) {
  return WindowProducts(layer, /*strides_over_src=*/true);
}

Products DeconvolutionProducts(const WindowLayer& layer) {
  return WindowProducts(layer, /*strides_over_src=*/false);
}

Products InnerProducts(int64_t batch, int64_t outputs, int64_t inputs) {
  return [=](const VisitProduct& visit) {
    for (int64_t n = 0; n < batch; ++n) {
      for (int64_t o = 0; o < outputs; ++o) {
        for (int64_t i = 0; i < inputs; ++i)
          visit({n * inputs + i, o * inputs + i, n * outputs + o});
      }
    }
  };
}

Products MatrixProducts(const Dims& src, const Dims& weights, const Dims& dst) {
  return [=](const VisitProduct& visit) {
    const size_t last = dst.size() - 1;
    ForEachIndex(dst, [&](const Dims& index) {
      Dims left = index, right = index;
      left[last] = right[last - 1] = 0;
      const int64_t row = RowMajorPlace(src, BroadcastIndex(src, left));
      const int64_t column = RowMajorPlace(weights, BroadcastIndex(weights, right));
      const int64_t place = RowMajorPlace(dst, index);
      for (int64_t k = 0; k < src[last]; ++k) visit({row + k, column + k * weights[last], place});
    });
  };
}

ProductSums SumsOf(const Products& products, const ProductOperands& operands) {
  ProductSums sums{std::vector<ProductSum>(operands.src.size()),
                   std::vector<ProductSum>(operands.weights.size()),
                   std::vector<ProductSum>(operands.diff_dst.size())};
  products([&](const Product& product) {
    const double src = operands.src[product.src], weight = operands.weights[product.weights];
    const double gradient = operands.diff_dst[product.dst];
    sums.dst[product.dst].Add(src * weight);
    sums.src[product.src].Add(gradient * weight);
    sums.weights[product.weights].Add(gradient * src);
  });
  return sums;
}

std::vector<double> SumsOfChannels(const Dims& dst, const std::vector<double>& diff_dst) {
  std::vector<double> sums(dst[1]);
  const int64_t plane = *ElementCount(SpatialDims(dst));
  for (size_t i = 0; i < diff_dst.size(); ++i) sums[i / plane % dst[1]] += diff_dst[i];
  return sums;
}

}  // namespace tilewire::testing
