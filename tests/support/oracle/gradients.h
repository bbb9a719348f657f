// SPDX-License-Identifier: Apache-2.0
//
// Gradients of layers whose results are sums of products, in double precision, by plain loops over
// row-major tensors. A layer is the list of its products: dst[d] += src[s] * weights[w] for each of
// the triples that it visits, and so
//
//   diff_src[s] += diff_dst[d] * weights[w]      diff_weights[w] += diff_dst[d] * src[s]
//
// Thread-safe.
#ifndef TESTS_SUPPORT_ORACLE_GRADIENTS_H_
#define TESTS_SUPPORT_ORACLE_GRADIENTS_H_

#include <cmath>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/memory/dims.h"

namespace tilewire::testing {

// Places in row-major tensors.
struct Product {
  int64_t src, weights, dst;
};
using VisitProduct = std::function<void(const Product&)>;
using Products = std::function<void(const VisitProduct&)>;

// A window that slides over the spatial dimensions; weights are [O, I/groups, k...] or, with a
// dimension of groups, [G, O/G, I/G, k...]: row-major, the two are the same. Dilations count from
// 0.
struct WindowLayer {
  Dims src, dst, kernel;
  int64_t groups = 1;
  Dims strides, dilations, padding_left;
};
Products ConvolutionProducts(const WindowLayer& layer);
Products DeconvolutionProducts(const WindowLayer& layer);

// dst[n,o] += src[n,i] * weights[o,i] for i below `inputs`.
Products InnerProducts(int64_t batch, int64_t outputs, int64_t inputs);

// dst[b,m,n] += src[b,m,k] * weights[b,k,n]; dimensions of size 1 before the last two are
// broadcast.
Products MatrixProducts(const Dims& src, const Dims& weights, const Dims& dst);

// A sum of products, the sum of their magnitudes, and how many there are.
struct ProductSum {
  double value = 0, magnitude = 0, count = 0;

  void Add(double product) {
    value += product;
    magnitude += std::abs(product);
    ++count;
  }
};
struct ProductOperands {
  std::vector<double> src, weights, diff_dst;
};
// The layer's dst, and the gradients of both sides.
struct ProductSums {
  std::vector<ProductSum> src, weights, dst;
};
ProductSums SumsOf(const Products& products, const ProductOperands& operands);

// The sum of diff_dst [N, O, ...] per output channel.
std::vector<double> SumsOfChannels(const Dims& dst, const std::vector<double>& diff_dst);

}  // namespace tilewire::testing

#endif  // TESTS_SUPPORT_ORACLE_GRADIENTS_H_
